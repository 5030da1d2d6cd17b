"""Chromium without a window, spoken to in its DevTools protocol over two pipes; needs nothing but Python."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any, BinaryIO

PATIENCE_S = 120.0

FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--no-first-run",
    "--window-size=1100,640",
)

KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "F1": 112,
    "Period": 190,
}
"""The virtual key codes by which an editor looks up its key bindings."""

ALT, CTRL, SHIFT = 1, 2, 8
"""Bits of the modifiers of a key event."""

BEHIND_3_AND_4 = 10
"""Descriptors of pipes are moved to here and beyond, for in the browser they become 3 and 4."""


def _moved(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, BEHIND_3_AND_4)
    os.close(descriptor)
    return moved


class Browser:
    """One process with as many pages as are opened."""

    def __init__(self, binary: str, profile: Path) -> None:
        its_read, our_write = map(_moved, os.pipe())
        our_read, its_write = map(_moved, os.pipe())
        start = f"import os, sys; os.dup2({its_read}, 3); os.dup2({its_write}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, binary, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(its_read, its_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_read)
        os.close(its_write)
        self._out, self._in = os.fdopen(our_write, "wb"), os.fdopen(our_read, "rb")
        self._waiting: dict[int, Queue[dict[str, Any]]] = {}
        self._last_id = 0
        threading.Thread(target=self._listen, args=(self._in,), daemon=True).start()

    def open(self, url: str) -> Page:
        target = self.call("Target.createTarget", {"url": url})["targetId"]
        return Page(
            self, target, self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        )

    def call(self, method: str, params: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        """What the browser answers."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        answer = self._waiting[self._last_id] = Queue()
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        told = answer.get(timeout=PATIENCE_S)
        assert "error" not in told, told["error"]
        return told["result"]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self._out.close()

    def _listen(self, stream: BinaryIO) -> None:
        rest = b""
        while data := os.read(stream.fileno(), 1 << 16):
            *messages, rest = (rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._waiting.pop(message["id"]).put(message)
        stream.close()


class Page:
    """A tab, and the keys of one who sits before it."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.browser = browser
        self.target = target
        self.session = session

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.browser.call(method, params or {}, self.session)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        told = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """The text of all elements that fit, with plain blanks."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
        return [text.replace("\xa0", " ") for text in self.evaluate(found)]

    def type(self, text: str) -> None:
        """Press the keys of a text, one after the other."""
        for character in text:
            self._key("keyDown", {"key": character, "text": character})
            self._key("keyUp", {"key": character})

    def press(self, code: str, modifiers: int = 0) -> None:
        """One key by its code, or a letter with Ctrl."""
        letter = code not in KEYS
        virtual = ord(code.upper()) if letter else KEYS[code]
        event = {"key": code, "code": f"Key{code.upper()}" if letter else code, "windowsVirtualKeyCode": virtual}
        event |= {"modifiers": modifiers}
        if code == "Enter":
            self._key("keyDown", event | {"text": "\r"})
        else:
            self._key("rawKeyDown", event)
        self._key("keyUp", event)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that fits."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.evaluate(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", event)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self.browser.call("Target.closeTarget", {"targetId": self.target})

    def _key(self, kind: str, event: dict[str, Any]) -> None:
        self.call("Input.dispatchKeyEvent", {"type": kind, **event})
