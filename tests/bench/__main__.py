"""`make bench`: what things cost, as ratios taken side by side in one run, because machines differ.

`make bench ARGS="ses pace"` runs some of them; names are the modules beside this file.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time

ALL = (
    *("audience", "prefect", "idle", "ses", "sender_ses", "pace", "feedback", "supabase"),
    *("articles", "single_mails", "notifications", "dashboard"),
)


def main(names: list[str]) -> None:
    logging.disable(logging.INFO)  # what is printed here are the numbers
    results = {}
    for name in names or ALL:
        started = time.perf_counter()
        results[name] = importlib.import_module(f"tests.bench.{name}").run()
        print(f"{name} ({time.perf_counter() - started:.0f} s)")
        for key, value in results[name].items():
            print(f"  {key:<44} {value}")
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
