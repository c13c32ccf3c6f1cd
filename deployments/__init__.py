"""Where the files are that are no code: for Prefect, for the demo, for Supabase.

In the source they stand in the project's folder, where Prefect and the Supabase CLI look for them; an
installed package has them in this one.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    inside = HERE / name
    return inside if inside.exists() else HERE.parent / name


PREFECT_YAML = _shipped("prefect.yaml")
EXAMPLES = _shipped("examples")
UNRESPONSIVE_RUNS = HERE / "unresponsive-runs.yaml"
