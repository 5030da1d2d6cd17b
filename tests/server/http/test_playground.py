"""The page at `/`: what the server sends for it, and what a browser makes of it."""

import asyncio
import re
from pathlib import Path
from typing import Literal

import pytest
from mercury_engine.api import SlotView

from mercury_lsp.http import own_routes
from tests.support.browser import Browser
from tests.support.fake_engine import FakeEngine
from tests.support.http_server import Scripted, served
from tests.support.sharing import eventually
from tests.support.vscode import find_chromium

State = Literal["mask", "committed"]

TOKEN = "0123456789abcdef"

SECRET = 'token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"'

STEPS: tuple[tuple[State, State], ...] = (
    ("mask", "mask"),
    ("committed", "mask"),
    ("mask", "committed"),
    ("committed", "committed"),
)

FAULTS = """
window.faults = [];
for (const kind of ["error", "unhandledrejection", "securitypolicyviolation"])
  addEventListener(kind, (event) => faults.push([kind, event.message, event.reason, event.violatedDirective]), true);
"""

TYPED = ".cm-line > span:not(.cm-ghost), .cm-line"
"""Lines, and their parts; grey text is a part of the line that it stands in."""

needs_browser = pytest.mark.skipif(
    find_chromium() is None or not (own_routes.PAGE / "index.html").is_file(),
    reason="needs Chromium, and the page that `make playground` builds",
)


def unmasking() -> FakeEngine:
    """An engine that decides one of two tokens a step, and masks one of them again in between."""
    engine = FakeEngine()
    engine.canvases = [
        tuple(SlotView(text, state, 0.75) for text, state in zip(("sugg", "ested"), states, strict=True))
        for states in STEPS
    ]
    return engine


async def test_the_page_loads_nothing_from_elsewhere_and_its_styles_have_a_nonce_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "index.html").write_text('<meta name="csp-nonce" content="{nonce}" />', "utf-8")
    monkeypatch.setattr(own_routes, "PAGE", tmp_path)
    async with served() as server:
        first, second = [await server.client.get("/") for _ in range(2)]
    policies = [page.headers["content-security-policy"] for page in (first, second)]
    nonces = [re.findall("'nonce-([^']+)'", policy) for policy in policies]
    assert nonces[0] != nonces[1] and nonces[0][0] in first.text and nonces[1][0] in second.text
    assert "default-src 'none'" in policies[0] and "unsafe" not in policies[0] and "http" not in policies[0]


async def test_the_page_needs_no_token_and_its_requests_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERCURY_TOKEN", TOKEN)
    async with served() as server:
        assert (await server.client.get("/")).status_code in (200, 404)
        assert (await server.post("/mercury/v1/steps", {})).status_code == 401
        assert (await server.client.get("/..%2fown_routes.py")).status_code == 401


async def test_the_answer_says_why_an_editor_would_not_show_it():
    engine = FakeEngine(confidence=0.02)
    async with served(engine) as server:
        *_, last = await server.events("/mercury/v1/steps", {"prompt": "x = ", "suffix": "\n"})
    assert last["answer"]["silence"] == "the model is only 2% sure of its text"


async def test_a_line_with_a_secret_is_not_filled():
    async with served(Scripted()) as server:
        reply = await server.post("/mercury/v1/steps", {"prompt": SECRET[:-3]})
    assert reply.status_code == 400 and "secret" in reply.json()["error"]["message"]


@needs_browser
async def test_in_a_browser_grey_text_is_taken_by_key_and_the_canvas_shows_every_step(tmp_path: Path):
    async with served(unmasking()) as server:
        await asyncio.to_thread(_use, server.url, tmp_path)


def _use(url: str, folder: Path) -> None:
    chromium = find_chromium()
    assert chromium is not None
    browser = Browser(chromium, folder / "chromium")
    try:
        page = browser.open("about:blank")
        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", {"source": FAULTS})
        page.call("Page.navigate", {"url": f"{url}/"})
        eventually(lambda: page.texts(".cm-ghost") == ["suggested"])
        assert page.texts(".slot") == ["sugg", "ested"] and page.texts("#step-number") == ["4 of 4"]
        assert page.texts("#said")[0].startswith("4 steps, ") and page.texts(".cm-ghost.silent") == []
        page.evaluate("const at = document.getElementById('step'); at.value = 3; at.dispatchEvent(new Event('input'))")
        states = page.evaluate("[...document.querySelectorAll('.slot')].map(slot => slot.className)")
        assert states == ["slot mask again", "slot committed new"]
        page.press("Escape")
        assert page.texts(".cm-ghost") == []
        page.type("s")
        eventually(lambda: page.texts(".cm-ghost") == ["suggested"])
        page.press("Tab")
        assert page.texts(".cm-ghost") == [] and "ssuggested" in "".join(page.texts(".cm-line"))
        eventually(lambda: page.texts(".cm-ghost") == ["suggested"])
        page.click(".cm-ghost")
        eventually(lambda: any("ssuggestedsuggested" in line for line in page.texts(TYPED)))
        page.evaluate(
            "const l = document.getElementById('language'); l.value = 'Go'; l.dispatchEvent(new Event('change'))"
        )
        eventually(lambda: "package stack" in page.texts(".cm-line") and page.texts(".cm-ghost") == ["suggested"])
        page.press("Escape")  # what is asked for after the key may have come by now
        page.press("Tab")
        assert page.evaluate("!document.querySelector('.cm-content').contains(document.activeElement)")
        assert page.evaluate("document.querySelectorAll('#times rect').length") > 0
        assert page.evaluate("window.faults") == []
        asked = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
        assert asked and all(name.startswith((url, "data:")) for name in asked)
    finally:
        browser.close()
