"""An editor whose next edits a fake server makes, which answers as llama-server or Inception's API do."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from typing import Any

from tests.support.editor import Editor, span
from tests.support.fake_remote import FakeRemote, Reply, Route, Sent

SERVER = [sys.executable, "-m", "mercury_lsp", "--in-process"]

COMPLETIONS, EDITS, CHAT = "/v1/completions", "/v1/edit/completions", "/v1/chat/completions"

KEY = "a-key-of-the-users"


def completes(*texts: str, finish_reason: str = "stop") -> Route:
    """One text after another as llama-server sends it, the last one again and again."""
    return _in_turn([_choice({"text": text, "logprobs": None}, finish_reason) for text in texts])


def llama_probabilities(tokens: Sequence[tuple[str, float]]) -> Any:
    """The probabilities of tokens as llama-server tells them."""
    return {"content": [{"token": text, "bytes": list(text.encode()), "logprob": log(p)} for text, p in tokens]}


def vllm_probabilities(tokens: Sequence[tuple[str, float]]) -> Any:
    """The same as vLLM tells them."""
    return {"tokens": [text for text, _ in tokens], "token_logprobs": [log(p) for _, p in tokens]}


def completes_with(logprobs: Any, text: str) -> Route:
    """A text, and what a server tells of its tokens."""
    return _in_turn([_choice({"text": text, "logprobs": logprobs}, "stop")])


def replies(*texts: str) -> Route:
    """The same as a message, as chats and Inception's API have it."""
    return _in_turn([_choice({"message": {"role": "assistant", "content": text}}, "stop") for text in texts])


def _choice(choice: dict[str, Any], finish_reason: str) -> bytes:
    body = {"id": "1", "object": "x", "choices": [{"index": 0, "finish_reason": finish_reason} | choice]}
    return json.dumps(body, indent=2).encode()


def _in_turn(bodies: Sequence[bytes]) -> Route:
    left = list(bodies)

    def route(sent: Sent) -> Reply:
        return 200, left.pop(0) if len(left) > 1 else left[0]

    return route


def serving(route: Route, path: str = COMPLETIONS) -> FakeRemote:
    return FakeRemote({f"POST {path}": route})


def opened(model: Path, url: str, **settings: Any) -> Editor:
    """An editor whose environment names the URL for edits."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "MERCURY_EDIT_ENGINE": url,
        "MERCURY_EDIT_API_KEY": KEY,
        "MERCURY_API_KEY": "another-key",
    }
    editor = Editor(None, SERVER, env=environment).initialize({}, {"model": str(model), **settings})
    editor.until(lambda: any(line.startswith("loaded ") for line in said(editor)))
    return editor


def said(editor: Editor) -> list[str]:
    shown = ("window/logMessage", "window/showMessage")
    return [params["message"] for method, params in editor.notices if method in shown]


class Desk:
    """One document, and the edits that are asked for and applied in it."""

    def __init__(self, editor: Editor, text: str, language: str = "python", uri: str = "") -> None:
        self.editor, self.text, self.version = editor, text, 1
        self.uri = uri or editor.opened(text, language)
        if uri:
            editor.open(uri, text, language)

    def replace(self, old: str, new: str) -> None:
        """The user replaces the first place of a text."""
        at = self.text.index(old)
        self._change(at, at + len(old), new)

    def asked(self, line: int, column: int = 0) -> list[Any]:
        """The edits that are shown at a cursor."""
        params = {
            "textDocument": {"uri": self.uri, "version": self.version},
            "position": {"line": line, "character": column},
        }
        found: list[Any] = self.editor.request("textDocument/copilotInlineEdit", params)["edits"]
        return found

    def take(self, line: int, column: int = 0) -> bool:
        """Ask for an edit and apply it; whether there was one."""
        found = self.asked(line, column)
        if found:
            [edit] = found
            start, end = (self._offset(edit["range"][side]) for side in ("start", "end"))
            self._change(start, end, edit["text"])
        return bool(found)

    def explained(self) -> str:
        """Why nothing was shown."""
        params = {"command": "mercury.explain", "arguments": []}
        return "; ".join(self.editor.request("workspace/executeCommand", params))

    def _offset(self, place: Any) -> int:
        return sum(map(len, self.text.splitlines(keepends=True)[: place["line"]])) + int(place["character"])

    def _change(self, start: int, end: int, new: str) -> None:
        self.version += 1
        places = [(self.text.count("\n", 0, at), at - self.text.rfind("\n", 0, at) - 1) for at in (start, end)]
        self.editor.change(self.uri, self.version, {"range": span(*places), "text": new})
        self.text = self.text[:start] + new + self.text[end:]


def silent_until(release: Callable[[], Any]) -> Route:
    """Answers nothing until `release` returns, then hangs up."""

    def route(sent: Sent) -> None:
        release()

    return route
