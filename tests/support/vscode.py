"""A real VS Code workbench with the built extension, in a browser without a window."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.browser import CTRL, Browser, Page
from tests.support.neovim import until

HERE = Path(__file__).parent
EXTENSION = HERE.parents[1] / "editors" / "vscode"
FAKE_SERVER = [sys.executable, str(HERE / "fake_server.py")]
"""The real server with an engine that says what the document tells it to."""

INLINE = "textDocument/inlineCompletion"

PATIENCE_S = 300.0

QUIET = {
    "extensions.autoCheckUpdates": False,
    "files.autoSave": "afterDelay",
    "files.autoSaveDelay": 50,
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "workbench.startupEditor": "none",
}

STATUS = "[id='mercury-lsp.mercury-lsp.status'] a"

EDITOR = ".editor-instance .view-lines"

PANE = ".editor-instance .overflow-guard"
"""What is in sight of the editor."""

GHOST = """
[...document.querySelectorAll(".editor-instance .view-lines .view-line")].map(line =>
  [...line.querySelectorAll("[class*=ghost-text-decoration]")].map(e => e.textContent).join("")
).concat([...document.querySelectorAll(".suggest-preview-text .view-line")].map(e => e.textContent))
.filter(text => text).join("\\n")
"""


MEMORY = """
(async () => {
  const all = (await indexedDB.databases()).filter(({ name }) => name.includes("global"));
  const texts = all.map(({ name }) => new Promise((resolve) => {
    indexedDB.open(name).onsuccess = ({ target: { result } }) => {
      if (!result.objectStoreNames.contains("ItemTable")) return resolve("");
      const asked = result.transaction("ItemTable").objectStore("ItemTable").get("mercury-lsp.mercury-lsp");
      asked.onsuccess = () => resolve(String(asked.result ?? ""));
      asked.onerror = () => resolve("");
    };
  }));
  return (await Promise.all(texts)).join("");
})()
"""


DRAWN = """
(() => {
  const spans = [...document.querySelectorAll(".editor-instance .view-lines .view-line span span")];
  const pseudo = spans.flatMap(e => ["::before", "::after"].map(name => getComputedStyle(e, name).content));
  const struck = spans.filter(e => getComputedStyle(e).textDecorationLine === "line-through").map(e => e.textContent);
  const arrows = [...document.querySelectorAll(".editor-instance .cgmr")].map(e => getComputedStyle(e).backgroundImage);
  const plain = text => text.slice(1, -1).replace(/\\\\a /g, "\\n").replace(/\\\\(["\\\\])/g, "$1");
  return { drawn: pseudo.filter(text => /^"/.test(text)).map(plain), struck, arrows };
})()
"""


def tap_of(file: Path) -> Path:
    """The log of what is said about a file."""
    return file.with_suffix(".jsonl")


def tapped(file: Path) -> list[str]:
    """The fake server with a tap before it."""
    return [sys.executable, str(HERE / "tap.py"), str(tap_of(file)), *FAKE_SERVER]


def missing() -> str | None:
    """What is missing and how to get it; None if nothing is."""
    if shutil.which("node") is None:
        return "no node on the PATH"
    if find_workbench() is None:
        return "no VS Code: set MERCURY_VSCODE to a folder with out/server-main.js, see editors/vscode/README.md"
    if find_chromium() is None:
        return "no Chromium: install it or set MERCURY_CHROMIUM to its program"
    if not (EXTENSION / "node_modules").is_dir():
        return "nothing to build the extension with: run `npm ci` in editors/vscode"
    return None


def find_workbench() -> Path | None:
    named = os.environ.get("MERCURY_VSCODE")
    script = Path(named) / "out" / "server-main.js" if named else None
    return script if script is not None and script.is_file() else None


def find_chromium() -> str | None:
    names = (os.environ.get("MERCURY_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


def head(fill: dict[str, Any]) -> str:
    """The first line of a file, which tells the engine what to suggest."""
    return f"# [[{json.dumps(fill)}]]\n"


class Workbench:
    """The server of a workbench that has the extension as its sources are now, a checker for files, and a browser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = [folder / "data" / scope / "settings.json" for scope in ("User", "Machine")]
        for path in self.settings:
            path.parent.mkdir(parents=True)
        self.configure({})
        self._install()
        self.process, self.host = self._serve()
        chromium = find_chromium()
        assert chromium is not None
        self.browser = Browser(chromium, folder / "chromium")

    def configure(self, settings: dict[str, Any]) -> None:
        """The user's settings; windows that are open may see them or not.

        Settings of machine scope are read from the machine's own file alone, for a window of a server is a remote one.
        """
        for path in self.settings:
            text = json.dumps(QUIET | settings)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)

    def open(self, file: Path) -> Window:
        """A window of its own, on the file's folder; the cursor is at the end of the file."""
        payload = json.dumps([["openFile", f"vscode-remote://{self.host}{file}"]])
        url = f"http://{self.host}/?folder={quote(str(file.parent))}&payload={quote(payload)}"
        page = self.browser.open(url)
        window = Window(page, file)
        window.waits(lambda: window.status() and page.texts(EDITOR))
        page.click(PANE)
        page.press("End", CTRL)
        return window

    def close(self) -> None:
        self.browser.close()
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def _install(self) -> None:
        subprocess.run(["node", "build.mjs"], cwd=EXTENSION, check=True)
        installed = self.folder / "extensions" / "mercury-lsp"
        for name in ("package.json", "dist/extension.js"):
            copy = installed / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(EXTENSION / name, copy)
        shutil.copytree(HERE / "checker", self.folder / "extensions" / "checker")

    def _serve(self) -> tuple[subprocess.Popen[bytes], str]:
        script, log = find_workbench(), self.folder / "log.txt"
        assert script is not None
        options = ["--host", "127.0.0.1", "--port", "0", "--server-data-dir", str(self.folder)]
        options += ["--without-connection-token", "--accept-server-license-terms"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["node", str(script), *options], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
        port = until(lambda: re.search(r"agent listening on (\d+)", log.read_text()), PATIENCE_S)[1]
        return process, f"127.0.0.1:{port}"


@dataclass(frozen=True)
class NextEdit:
    """What one sees of a next edit."""

    removed: str
    added: list[str]
    hints: list[str]
    arrows: int
    """Arrows in the gutter."""


class Window:
    """A workbench with one file."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.file = file

    def waits(self, what: Any) -> Any:
        """As `until`; keeps a picture of what was there in its place."""
        try:
            return until(what, PATIENCE_S)
        except AssertionError:
            self.page.screenshot(self.file.with_suffix(".png"))
            raise

    def configure(self, settings: dict[str, Any]) -> None:
        """The workspace's settings."""
        path = self.file.parent / ".vscode" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))

    def is_ready(self) -> Window:
        self.waits(lambda: self.status().startswith("Mercury ready"))
        return self

    def shows(self, ghost: str) -> None:
        self.waits(lambda: self.ghost() == ghost)

    def reads(self, text: str) -> None:
        """The file, which is saved after every change, has this text."""
        self.waits(lambda: self.file.read_text() == text)

    def settles(self) -> None:
        """Ghost text was asked for where the cursor is, and nothing waits for an answer."""
        self.waits(lambda: (asked := self.asked()) and asked <= {message.get("id") for message in self.said("server")})

    def asked(self) -> set[int]:
        """The requests for ghost text."""
        return {message["id"] for message in self.said("editor") if message.get("method") == INLINE}

    def said(self, name: str) -> list[dict[str, Any]]:
        """The messages of the editor or of the server, where a tap is between them."""
        lines = [json.loads(line) for line in tap_of(self.file).read_text().splitlines()]
        return [line["said"] for line in lines if line["from"] == name]

    def calls(self, method: str) -> list[Any]:
        """The parameters of what the editor asked or told the server."""
        return [each["params"] for each in self.said("editor") if each.get("method") == method]

    def ghost(self) -> str:
        return self.page.evaluate(GHOST).replace("\xa0", " ")

    def drawn(self) -> NextEdit:
        """What is drawn of a next edit."""
        found = self.page.evaluate(DRAWN)
        drawn = [text.replace("\xa0", " ") for text in found["drawn"]]
        hints = [
            text for text in drawn if text.startswith(("↑", "↓")) or re.search(r"\d of \d| to (?:jump|apply)$", text)
        ]
        arrows = [text for text in found["arrows"] if "svg" in text]
        return NextEdit("".join(found["struck"]), [text for text in drawn if text not in hints], hints, len(arrows))

    def draws(self, added: str, hint: str) -> NextEdit:
        """A next edit that adds a text is drawn with a hint."""
        return self.waits(lambda: (now := self.drawn()).added == [added] and now.hints == [hint] and now)

    def draws_nothing(self) -> None:
        self.waits(lambda: self.drawn() == NextEdit("", [], [], 0))

    def status(self) -> str:
        return self.page.evaluate(f"document.querySelector({json.dumps(STATUS)})?.getAttribute('aria-label') ?? ''")

    def rows(self) -> list[str]:
        """What a list to pick from offers."""
        return [text.strip() for text in self.page.texts(".quick-input-list .monaco-list-row .label-name")]

    def details(self) -> list[str]:
        """What stands beside each row of that list."""
        return [text.strip() for text in self.page.texts(".quick-input-list .monaco-list-row .label-description")]

    def messages(self) -> list[str]:
        """The notifications that are shown."""
        return self.page.texts(".notifications-toasts .notification-list-item-message")

    def remembers(self) -> str:
        """What the extension has stored for the next start."""
        return self.page.evaluate(MEMORY) or ""

    def search(self, text: str) -> None:
        """Type into the palette."""
        self.page.press("F1")
        self.waits(lambda: self.page.evaluate("!!document.activeElement.closest('.quick-input-widget')"))
        self.page.type(text)

    def run(self, title: str) -> None:
        """Run a command by its title in the palette."""
        self.search(title)
        self.waits(lambda: title in self.rows())
        for _ in range(self.rows().index(title)):
            self.page.press("ArrowDown")
        self.page.press("Enter")

    def close(self) -> None:
        self.page.close()


Open = Callable[..., Window]
"""What opens a window, see the fixture `window`."""
