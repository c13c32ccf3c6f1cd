"""axe-core: what on a page somebody could not read or use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = f"window.load_axe = () => {{ {(Path(__file__).parent / 'axe.min.js').read_text(encoding='utf-8')} }}"
"""For `add_init_script`: every page that is opened then has it, and runs it when it is asked."""

VIOLATIONS = (
    "options => (window.axe || load_axe(), axe).run(document, {resultTypes: ['violations'], ...options})"
    ".then(r => r.violations.map(v => [v.id, v.impact, v.nodes[0].html.slice(0, 200),"
    " v.nodes[0].failureSummary]))"
)


def violations(page: Page, **options: Any) -> list[list[str]]:
    """The rule, how bad it is, where, and why; `options` are those of `axe.run`."""
    page.wait_for_load_state()
    return page.evaluate(VIOLATIONS, options)
