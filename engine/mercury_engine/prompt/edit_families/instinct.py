"""Instinct by Continue (Qwen2.5-Coder 7B, Apache-2.0): one message; the region between its marks comes back.

Format: continuedev/continue, core/nextEdit/templating/instinct.ts. The fence that ends the excerpt is not begun there.
"""

from mercury_engine.api import EditHunk
from mercury_engine.prompt.edit_families.window import Family, Window, ended, unified

START, END, CURSOR = "<|editable_region_start|>", "<|editable_region_end|>", "<|user_cursor_is_here|>"

TASK = (
    "Reference the user excerpt, user edits, and the snippets to understand the developer's intent. Update the "
    "editable region of the user excerpt by predicting and completing the changes they would have made next. This may "
    "be a deletion, addition, or modification of code."
)

MAX_EDITS = 6


def _prompt(window: Window) -> str:
    edits = "\n".join(_edit(each, window.path) for each in window.history[-MAX_EDITS:])
    region = f"{START}\n{ended(window.marked(CURSOR))}{END}\n"
    excerpt = f"{window.path}\n\n{window.above}{region}{ended(window.below)}"
    return f"{TASK}\n\n### Context:\n\n\n### User Edits:\n\n{edits}\n\n### User Excerpt:\n{excerpt}```\n### Response:"


def _edit(hunk: EditHunk, path: str) -> str:
    return f'User edited file "{hunk.path or path}"\n\n```diff\n{unified(hunk)}```'


def _answer(window: Window, text: str) -> str:
    return text.rpartition(f"{START}\n")[2].partition(END)[0]


INSTINCT = Family(
    "instinct",
    _prompt,
    _answer,
    lambda window: ended(window.text),
    lines=(1, 5),
    chars=3000,
    cursor=CURSOR,
    markers=(START, END, CURSOR, "<|context_file|>", "<|snippet|>"),
    is_chat=True,
    names=("instinct",),
)
