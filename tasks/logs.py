"""What every flow and task is given: the engine, a log among Prefect's own, and nothing shown that is hidden.

A worker starts each flow run as a process of its own, in which nobody but Prefect has set up logging.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, get_type_hints

from prefect.exceptions import MissingContextError
from prefect.logging.handlers import APILogHandler, PrefectConsoleHandler

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.logs import LineFormatter, configure_logging
from mailout.base.redact import RedactLines, Redactor, hidden_in_error
from mailout.base.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

OURS = "mailout"
PREFECTS = ("prefect.flow_runs", "prefect.task_runs", "prefect.extra")


def with_engine(
    function: Callable[Concatenate[Engine, P], R],
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Callable[P, R]:
    """For the function of a flow or a task: it is given the process's engine as its first argument, which
    Prefect does not see. It logs as the settings say, and an error of its shows nothing that is to be
    hidden: Prefect makes the state of a run from it."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with around(), _set_up() as engine:
            return function(engine, *args, **kwargs)

    @wraps(function)
    def run_in_turns(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, Any]:
        with around(), _set_up() as engine:
            return (yield from cast("Generator[Any, Any, Any]", function(engine, *args, **kwargs)))

    chosen = cast("Callable[P, R]", run_in_turns) if inspect.isgeneratorfunction(function) else run
    # Prefect checks a run's parameters by the types, and would look for their names in this module.
    signature = inspect.signature(function, eval_str=True)
    ours, *others = signature.parameters.values()
    hints = get_type_hints(function, include_extras=True)
    chosen.__annotations__ = {name: hint for name, hint in hints.items() if name != ours.name}
    chosen.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return chosen


@contextmanager
def _set_up() -> Iterator[Engine]:
    hide = Redactor()
    try:
        engine = wiring.engine()
        hide = Redactor.of(engine.settings)
        log_in_run(engine.settings)
        yield engine
    except Exception as error:
        shown = hidden_in_error(error, hide)
        if shown is error:
            raise
        raise shown from error


def hidden(text: str) -> str:
    """For what goes to Prefect past its logs: artifacts, the messages of states."""
    return Redactor.of(wiring.engine().settings)(text)


class RunLog(APILogHandler):
    """Our lines on their way to the run that they were said in; outside of one they stay where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.setLevel(logging.INFO)  # a line for each of a million is not for Prefect's database

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], MissingContextError):
            super().handleError(record)


def log_in_run(settings: Settings) -> None:
    """Again for every run: another may have had other settings."""
    _take_over_console(settings)
    ours = logging.getLogger(OURS)
    for old in [one for one in ours.handlers if isinstance(one, APILogHandler)]:
        ours.removeHandler(old)
    ours.addHandler(RunLog())
    ours.setLevel(min(ours.level or logging.INFO, logging.INFO))
    redact = RedactLines(Redactor.of(settings))
    for name in (OURS, *PREFECTS):
        for handler in logging.getLogger(name).handlers:
            handler.filters = [one for one in handler.filters if not isinstance(one, RedactLines)]
            handler.addFilter(redact)
            if isinstance(handler, APILogHandler):
                handler.setFormatter(LineFormatter())  # the time and the level Prefect keeps besides


def _take_over_console(settings: Settings) -> None:
    """Prefect's own console, where there is one, gives way to ours at the same level: it knows no JSON."""
    root = logging.getLogger()
    for console in [one for one in root.handlers if isinstance(one, PrefectConsoleHandler)]:
        root.removeHandler(console)
        configure_logging(settings, console.level or logging.INFO)
