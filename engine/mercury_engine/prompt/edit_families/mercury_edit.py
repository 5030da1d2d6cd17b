"""Mercury Edit by Inception: one message with the file, the window in it and the edits; the window in a code fence."""

from mercury_engine.api import EditHunk
from mercury_engine.prompt.edit_families.window import Family, Window, ended, unified

SEEN, FILE, WINDOW, EDITS = (
    "recently_viewed_code_snippets",
    "current_file_content",
    "code_to_edit",
    "edit_diff_history",
)
CURSOR = "<|cursor|>"


def _prompt(window: Window) -> str:
    edits = "".join(_edit(each, window.path) for each in window.history)
    text = f"<|{WINDOW}|>\n{ended(window.marked(CURSOR))}<|/{WINDOW}|>\n"
    file = f"current_file_path: {window.path}\n{window.above}{text}{ended(window.below)}"
    return "\n".join(f"<|{name}|>\n{body}<|/{name}|>\n" for name, body in ((SEEN, ""), (FILE, file), (EDITS, edits)))


def _edit(hunk: EditHunk, path: str) -> str:
    path = hunk.path or path
    return f"--- {path}\n+++ {path}\n{unified(hunk)}\n"


def _answer(window: Window, text: str) -> str:
    return window.text if text.strip() in ("None", "") else text


MERCURY_EDIT = Family(
    "mercury-edit",
    _prompt,
    _answer,
    lambda window: ended(window.text),
    lines=(150, 150),
    chars=450,
    cursor=CURSOR,
    markers=(*tuple(f"<|{end}{name}|>" for name in (SEEN, FILE, WINDOW, EDITS) for end in ("", "/")), CURSOR),
    is_chat=True,
    names=("mercury-edit", "mercury-coder", "mercury-next-edit"),
)
