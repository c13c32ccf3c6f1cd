"""`python -m tests.pictures`: the pictures of the README again, docs/dashboard.png and docs/report.png."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from tests.dashboard import scene
from tests.dashboard.conftest import ADMIN, site
from tests.needs import chromium
from tests.stubs.demo_ses import HOME
from tests.stubs.process import ROOT

DOCS = ROOT / "docs"


def dashboard(browser: Browser, place: Path) -> None:
    scene.SCRIPT = "Volunteers wanted"  # the tests put an attack there
    filled = place / "filled"
    filled.mkdir()
    store = SqliteStore(filled / "mailout.db", SystemClock())
    ids = scene.fill(store, filled)
    store.cancel(ids["odd"])
    (filled / "ids.json").write_text(json.dumps(ids))
    store.close()
    complete: dict[str, Any] = {
        "from_email": "news@example.org",
        "org_address": "1 Quay Street",
        "unsubscribe_secret": "of this picture alone",
        "unsubscribe_base_url": "https://mail.example.org/unsubscribe",
    }
    with site(filled, place / "home", **complete) as opened:
        page = browser.new_page(viewport={"width": 1280, "height": 980})
        page.goto(f"{opened.address}/login")
        page.fill("input[name=password]", ADMIN)
        page.press("input[name=password]", "Enter")
        page.wait_for_load_state("networkidle")
        save(page.screenshot(), DOCS / "dashboard.png")


def report(browser: Browser) -> None:
    subprocess.run([sys.executable, "-m", "tests.stubs.demo_ses"], cwd=ROOT, check=True)
    (html,) = (ROOT / HOME / "reports").glob("*.html")
    page = browser.new_page(viewport={"width": 900, "height": 700})
    page.goto(html.as_uri())
    save(page.screenshot(full_page=True), DOCS / "report.png")


def save(picture: bytes, path: Path) -> None:
    path.write_bytes(picture)
    with Image.open(path) as image:
        image.convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        dashboard(opened, Path(folder))
        report(opened)
        opened.close()
