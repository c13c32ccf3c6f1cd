# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Nothing reports home; nothing hidden in the environment changes what these commands do.
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export DO_NOT_TRACK := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install demo demo-ses test test-quick test-wheel check format docs bench bench-quick chaos soak lock clean

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.run: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mailout needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing mailout's packages into $(VENV): about two minutes, once."
	@$(BIN)/python deployments/install.py requirements.lock
	@touch $@

$(VENV)/.command: $(VENV)/.run pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.command requirements-dev.lock
	@echo "Installing what the tests need into $(VENV)."
	@$(BIN)/python deployments/install.py requirements-dev.lock
	@touch $@

install: $(VENV)/.command  ## build .venv with the command mailout and what it needs
	@echo "Installed. Next: source $(BIN)/activate, then: mailout init"

demo: $(VENV)/.run  ## send the shipped newsletter to made-up people, into a folder
	@$(BIN)/python -m cli demo $(ARGS)

demo-ses: $(VENV)/.run  ## the same through a stand-in for Amazon SES on this machine
	@$(BIN)/python -m tests.stubs.demo_ses $(ARGS)

test: $(VENV)/.dev  ## every test
	@$(BIN)/python -m tests.run $(BIN)/python -m pytest -n 4 --no-loadscope-reorder $(ARGS)

test-quick: $(VENV)/.dev  ## the unit tests: no Prefect, no Postgres, no browser
	@$(BIN)/python -m tests.run $(BIN)/python -m pytest -n 2 tests/unit $(ARGS)

test-wheel: $(VENV)/.dev  ## build the package, install it elsewhere, and use it there
	@$(BIN)/python -m tests.wheel $(ARGS)

check: $(VENV)/.dev  ## lint, format, types, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev  ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.run  ## write docs/settings.md and docs/errors.md again, from the code
	@$(BIN)/python -m docs.reference

bench: $(VENV)/.dev  ## measure, as ratios taken side by side: docs/benchmarks.md (20 minutes; ARGS=ROW: one)
	@$(BIN)/python -m tests.run $(BIN)/python -m tests.bench $(ARGS)

bench-quick: $(VENV)/.dev  ## some of the same with smaller sizes, in two minutes
	@$(BIN)/python -m tests.run $(BIN)/python -m tests.bench --quick $(ARGS)

chaos: $(VENV)/.dev  ## kill, stop, cut off and fill up everything: docs/reliability.md (30 minutes; ARGS=ROW[:STORE:MODE]: one)
	@$(BIN)/python -m tests.run $(BIN)/python -m tests.chaos $(ARGS)

soak: $(VENV)/.dev  ## mailout up for an hour, its processes killed: a section of docs/reliability.md (ARGS="--minutes 10")
	@$(BIN)/python -m tests.run $(BIN)/python -m tests.chaos.soak $(ARGS)

lock:  ## resolve pyproject.toml again into the two lock files (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --group install pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:  ## remove what the demo and the tests left (not .venv)
	rm -rf .mailout-demo .mailout-demo-ses .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
