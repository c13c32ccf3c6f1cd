"""Where the files for Prefect are. `prefect.yaml` is one folder up, where Prefect looks for it."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
PREFECT_YAML = HERE.parent / "prefect.yaml"
UNRESPONSIVE_RUNS = HERE / "unresponsive-runs.yaml"
