"""Sweep's next-edit models (Qwen2.5-Coder, Apache-2.0) on a server, in two dialects.

`sweep` is the dialect of its clients: the file, the edits, and the window thrice with its range of lines and the
cursor; the model goes on at the cursor's line. `sweep-card` is that of the cards (`sweep_format`).
"""

from dataclasses import replace

from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.prompt import sweep_format
from mercury_engine.prompt.edit_families.window import Family, Window, ended

FILE, END, CURSOR = sweep_format.FILE, "<|endoftext|>", "<|cursor|>"

MAX_EDITS = 6


def _prompt(window: Window) -> str:
    path, lines = window.path, f"{window.first_line}:{window.last_line}"
    files = [
        f"{path}\n{window.above}{ended(window.text)}{ended(window.below)}",
        *(_edit(each, path) for each in window.history[-MAX_EDITS:]),
        f"original/{path}:{lines}\n{ended(window.text)}",
        f"current/{path}:{lines}\n{ended(window.marked(CURSOR))}",
        f"updated/{path}:{lines}\n{_given(window)}",
    ]
    return "".join(f"{FILE}{each}" for each in files)


def _edit(hunk: EditHunk, path: str) -> str:
    return f"{hunk.path or path}.diff\noriginal:\n{ended(hunk.removed)}updated:\n{ended(hunk.inserted)}"


def _given(window: Window) -> str:
    """The lines above the cursor's, with which the answer begins."""
    return window.text[: window.text.rfind("\n", 0, window.cursor) + 1]


def _answer(window: Window, text: str) -> str:
    return _given(window) + text


def _card_prompt(window: Window) -> str:
    found = sweep_format.render(RewriteRequest(window.text, history=window.history, path=window.path))
    return "".join(each.text for each in found.pieces) if found is not None else ""


def _card_answer(window: Window, text: str) -> str:
    return text


SWEEP = Family(
    "sweep",
    _prompt,
    _answer,
    lines=(10, 10),
    chars=3000,
    cursor=CURSOR,
    markers=(FILE, END, CURSOR),
    stop=(FILE, END),
    names=("sweep",),
)

SWEEP_CARD = replace(SWEEP, name="sweep-card", prompt=_card_prompt, answer=_card_answer, names=())
