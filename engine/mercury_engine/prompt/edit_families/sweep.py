"""Sweep's next-edit models (Qwen2.5-Coder, Apache-2.0), in two dialects.

`sweep` is the dialect of its clients: the file, the edits, and the window thrice with its range of lines and the
cursor; the model goes on at the cursor's line. `sweep-card` is that of the cards of 0.5B and 1.5B: the edits, and the
window before the last edit, as it is, and as it should be. Other files could stand in front; they are left out.
"""

from collections.abc import Sequence
from dataclasses import replace

from mercury_engine.api import EditHunk
from mercury_engine.prompt.edit_families.window import Family, Window, ended

FILE, END, CURSOR = "<|file_sep|>", "<|endoftext|>", "<|cursor|>"

MAX_EDITS, MAX_CARD_EDITS = 6, 3

CARD_EDIT_CHARS = 1200
"""Most characters of one recent edit; longer ones are left out."""


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


def _card_prompt(window: Window) -> str:
    original, is_undone = _before_last(window.text, window.history)
    earlier = window.history[:-1] if is_undone else window.history
    sizes = [(each, len(each.removed) + len(each.inserted)) for each in earlier[-MAX_CARD_EDITS:]]
    files = [
        *(_card_edit(each, window.path) for each, size in sizes if size <= CARD_EDIT_CHARS),
        f"original/{window.path}\n{ended(original)}",
        f"current/{window.path}\n{ended(window.text)}",
        f"updated/{window.path}\n",
    ]
    return "".join(f"{FILE}{each}" for each in files)


def _card_edit(hunk: EditHunk, path: str) -> str:
    original, updated = (side.strip("\n") for side in (hunk.removed, hunk.inserted))
    return f"{hunk.path or path}.diff\noriginal:\n{original}\nupdated:\n{updated}\n"


def _before_last(text: str, history: Sequence[EditHunk]) -> tuple[str, bool]:
    """The lines as they were before the last edit, and whether it was made in them."""
    last = history[-1] if history else None
    if last is None or last.path is not None or not last.inserted or last.inserted not in text:
        return text, False
    return text.replace(last.inserted, last.removed, 1), True


SWEEP = Family(
    "sweep",
    _prompt,
    lambda window, text: _given(window) + text,
    lambda window: window.text[len(_given(window)) :],
    lines=(10, 10),
    chars=3000,
    cursor=CURSOR,
    markers=(FILE, END, CURSOR),
    stop=(FILE, END),
    names=("sweep",),
)

SWEEP_CARD = replace(
    SWEEP,
    name="sweep-card",
    prompt=_card_prompt,
    answer=lambda window, text: text,
    echo=lambda window: window.text,
    names=(),
)
