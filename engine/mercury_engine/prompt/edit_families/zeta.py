"""Zeta 2 and 2.1 by Zed (Seed-Coder 8B, Apache-2.0): the text below stands before the text above, the window last.

Zeta 2 writes the window and then UPDATED, or NO_EDITS; 2.1 the window between two numbered markers, the same one twice
for no change.
"""

import re

from mercury_engine.api import EditHunk
from mercury_engine.prompt.edit_families.window import Family, Window, ended, unified

SUFFIX, PREFIX, MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"
FILE, CURSOR = "<filename>", "<|user_cursor|>"
CURRENT, MIDST, UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"
FIRST, LAST = "<|marker_1|>", "<|marker_2|>"
NO_EDITS = "NO_EDITS"

MAX_EDITS = 6


def _around(window: Window) -> str:
    """All that comes before the window."""
    below = f"\n{ended(window.below)}" if window.below else "\n"
    edits = "\n".join(_edit(each, window.path) for each in window.history[-MAX_EDITS:])
    history = f"{FILE}edit_history\n{edits}\n" if edits else ""
    return f"{SUFFIX}{below}{PREFIX}{history}{FILE}{window.path}\n{window.above}"


def _edit(hunk: EditHunk, path: str) -> str:
    path = hunk.path or path
    return f"--- a/{path}\n+++ b/{path}\n{unified(hunk)}"


def _prompt_2(window: Window) -> str:
    return f"{_around(window)}{CURRENT}{ended(window.marked(CURSOR))}{MIDST}{MIDDLE}"


def _answer_2(window: Window, text: str) -> str:
    text = text.partition(UPDATED)[0]
    return window.text if text.lstrip().startswith(NO_EDITS) else text


def _prompt_2_1(window: Window) -> str:
    return f"{_around(window)}{FIRST}\n{ended(window.marked(CURSOR))}{LAST}\n{MIDDLE}"


def _answer_2_1(window: Window, text: str) -> str:
    if re.match(r"\s*<\|marker_(\d)\|>\s*<\|marker_\1\|>", text):
        return window.text
    return text.strip("\n").removeprefix(FIRST).removeprefix("\n").partition(LAST)[0]


ZETA_2 = Family(
    "zeta-2",
    _prompt_2,
    _answer_2,
    lambda window: ended(window.text),
    lines=(15, 15),
    chars=3000,
    cursor=CURSOR,
    markers=(SUFFIX, PREFIX, MIDDLE, FILE, CURSOR, CURRENT.strip(), UPDATED),
    stop=(f"{UPDATED}\n", UPDATED),
    names=("zeta-2", "zeta2", "zeta_2"),
)

ZETA_2_1 = Family(
    "zeta-2.1",
    _prompt_2_1,
    _answer_2_1,
    lambda window: f"{FIRST}\n{ended(window.text)}",
    lines=(15, 15),
    chars=1050,  # 350 tokens
    cursor=CURSOR,
    markers=(SUFFIX, PREFIX, MIDDLE, FILE, CURSOR, FIRST, LAST, "<|marker_"),
    stop=(LAST,),
    names=("zeta-2.1", "zeta2.1", "zeta_2.1"),
)
