"""Next edits requested by a chat whose last message has the markers of minuet's duet or Mercury's tags."""

import re
from typing import Any

from mercury_engine.text.common_prefix import common_text_prefix

from mercury_lsp.http.edits import edited_document, tagged
from mercury_lsp.http.rewriting import EditedDocument, applied, read_diff, rewritten
from mercury_lsp.http.service import Service

REGION, REGION_END, CURSOR = "<editable_region>\n", "\n</editable_region>", "<cursor_position/>"

_HISTORY = re.compile(r"<edit_history>((?:(?!<edit_history>).)*?)</edit_history>\n*", re.DOTALL)
"""Stops a search at the next beginning; many without an end would take quadratic time."""

_EDITED_FILE = re.compile(r'^User edited "(.*)":$', re.MULTILINE)


def asks_for_edit(text: str) -> bool:
    """Whether a message has such markers."""
    return _duet_document(text) is not None or tagged(text, "code_to_edit") is not None


async def edited(service: Service, text: str) -> tuple[str, dict[str, Any]]:
    """The reply to such a message, and its usage. Raises what `rewritten` raises."""
    duet = _duet_document(text)
    document = duet or edited_document(text)
    found = await rewritten(service, document)
    region = applied(document.text, document.start, document.end, found.changes)
    if duet is None:
        return region, found.usage
    at = _cursor_after(duet, region)
    return f"{REGION}{region[:at]}{CURSOR}{region[at:]}{REGION_END}", found.usage


def _duet_document(text: str) -> EditedDocument | None:
    """A message of minuet's duet; None for any other."""
    if REGION not in text or CURSOR not in text:
        return None
    history = "".join(_HISTORY.findall(text))
    before, begun, rest = _HISTORY.sub("", text).partition(REGION)
    region, ended, after = rest.partition(REGION_END)
    cursor = region.find(CURSOR)
    if not begun or not ended or cursor < 0:
        return None
    region = region.replace(CURSOR, "", 1)
    diff = _EDITED_FILE.sub(r"File: \1", history)
    files = _EDITED_FILE.findall(history)
    return EditedDocument(
        before + region + after,
        len(before),
        len(before) + len(region),
        files[-1] if files else "",
        len(before) + cursor,
        read_diff(diff, files[-1] if files else ""),
    )


def _cursor_after(document: EditedDocument, region: str) -> int:
    """Where the cursor is in the region as it should be: after the last change, or where it was."""
    old = document.text[document.start : document.end]
    if region == old:
        return (document.cursor or 0) - document.start
    shorter = min(len(old), len(region))
    return len(region) - common_text_prefix(old[::-1], region[::-1], shorter)
