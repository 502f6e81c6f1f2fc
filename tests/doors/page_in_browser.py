"""The page in a real browser, for `make test-browser`: Chromium must be on the machine, as no package brings it."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.doors.http_cases import daemon

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture
def tab() -> Any:
    """An empty tab, and all that the browser complained of or was asked by code that must not run."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    assert found is not None, "no Chromium here: install it, for example with `apt-get install chromium`"
    with importlib.import_module("playwright.sync_api").sync_playwright() as player:
        browser = player.chromium.launch(executable_path=found, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.complaints = []
        tab.on("console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (tab.complaints.append(dialog.message), dialog.dismiss()))
        yield tab
        browser.close()


def test_a_person_enters_the_token_asks_and_sees_why(home: Path, tab: Any) -> None:
    with daemon(home) as running:
        memory = {"content": f"We deploy on Tuesdays {HOSTILE}", "tags": ["ops"]}
        assert running.ask("POST", "/v1/memories", memory)[0] == 201
        tab.goto(running.url)
        tab.fill("#token", "wrong")
        tab.click("#enter button")
        tab.wait_for_function("document.getElementById('told').textContent.includes('token')")
        assert tab.is_visible("#enter") and not tab.is_visible("#ask")
        tab.complaints.clear()  # the browser tells of the 401
        tab.fill("#token", running.token)
        tab.click("#enter button")
        tab.wait_for_selector("#hits li")
        assert HOSTILE in tab.inner_text("#hits")
        tab.fill("#query", "when do we deploy?")
        tab.click("#ask button")
        tab.wait_for_selector("#hits meter")
        tab.click("text=The block for a prompt")
        assert "## Relevant Memories" in tab.inner_text("#rendered")
        assert tab.inner_text("#told").startswith("1 memory · balanced")
        assert "lexical" in tab.inner_text("#hits") and "#ops" in tab.inner_text("#hits")
        assert tab.locator("#hits img, #hits script").count() == 0
    assert tab.complaints == []


def test_a_long_memory_leaves_the_others_in_sight(home: Path, tab: Any) -> None:
    with daemon(home) as running:
        for text in ("short", "a long story. " * 2000):
            assert running.ask("POST", "/v1/memories", {"content": text})[0] == 201
        tab.goto(running.url)
        tab.fill("#token", running.token)
        tab.press("#token", "Enter")
        tab.wait_for_selector(".text")
        heights = tab.eval_on_selector_all(".text", "all => all.map(one => one.offsetHeight)")
        assert len(heights) == 2 and max(heights) < 400


def test_what_the_token_is_stands_on_few_lines(home: Path, tab: Any) -> None:
    with daemon(home) as running:
        tab.goto(running.url)
        label, line = "document.querySelector('#enter label')", "parseFloat(getComputedStyle(document.body).lineHeight)"
        assert tab.evaluate(f"{label}.offsetHeight / {line}") < 3
