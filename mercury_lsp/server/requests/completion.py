"""textDocument/completion, for clients without inline completion: the suggestion is the popup's first item."""

import re
from dataclasses import replace
from typing import Any

from lsprotocol import types
from mercury_engine.text.lines import indent_of

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.server.convert import accepted_command, to_range
from mercury_lsp.server.editor import EditorCapabilities
from mercury_lsp.server.server import MercuryServer

TRIGGER_CHARACTERS = [*".([{,=:<>+-*/&|!%@ "]

FIRST_SORT_TEXT = "!"
"""Sorts ahead of letters and digits."""

LABEL_CHARS = 80
"""Longest label, in characters."""

_WORD_AT_END = re.compile(r"\w*\Z")


async def completion(server: MercuryServer, params: types.CompletionParams) -> dict[str, Any]:
    """A list of at most one item, never complete: the model may know better once more is typed."""
    uri, editor = params.text_document.uri, server.editor.capabilities
    with server.editor.progress(params.work_done_token, "Completing", cancellable=True):
        # Clients do not say whether the user asked, so the silence gate always applies.
        found, snapshot = await server.suggester.suggest(uri, params.position, "popup", automatic=True)
    if editor.adds_indentation:
        found = [shown for each in found if (shown := _less_indented(each, snapshot)) is not None]
    return {"isIncomplete": True, "items": [_item(each, snapshot, editor) for each in found]}


def _less_indented(suggestion: Suggestion, snapshot: Snapshot) -> Suggestion | None:
    """The suggestion without the indentation that the client adds to all lines but the first.

    Ends before the first line that is indented less. None if nothing is left.
    """
    offset = snapshot.offset_at(*suggestion.start)
    line, start = snapshot.line_at(offset)
    indentation = line[: indent_of(line[: offset - start])]
    first, *others = suggestion.text.split("\n")
    at = next((at for at, each in enumerate(others) if each.strip() and not each.startswith(indentation)), None)
    text = "\n".join((first, *(each.removeprefix(indentation) for each in others[:at])))
    if at is not None:
        text = text.rstrip()
    return replace(suggestion, text=text) if text else None


def _item(suggestion: Suggestion, snapshot: Snapshot, editor: EditorCapabilities) -> dict[str, Any]:
    """The item also replaces the word before the cursor, because clients filter by that word."""
    word = _word_before(suggestion, snapshot)
    text = word + suggestion.text
    line, column = suggestion.start
    start = line, column - utf16_length(word)
    item = {
        "label": _label(suggestion.text if suggestion.text.startswith("\n") else text),
        "kind": types.CompletionItemKind.Text,
        "detail": "Mercury",
        "documentation": _preview(suggestion.text, snapshot.language_id, editor),
        "sortText": FIRST_SORT_TEXT,
        "filterText": text.lstrip().partition("\n")[0],
        "insertText": text,
        "insertTextFormat": types.InsertTextFormat.PlainText,
        "textEdit": {"range": to_range(start, suggestion.end), "newText": text},
        "command": accepted_command(suggestion),
    }
    if editor.keeps_indentation:
        item["insertTextMode"] = types.InsertTextMode.AsIs
    return item


def _word_before(suggestion: Suggestion, snapshot: Snapshot) -> str:
    offset = snapshot.offset_at(*suggestion.start)
    found = _WORD_AT_END.search(snapshot.slice(max(0, offset - LABEL_CHARS), offset))
    return found[0] if found else ""


def _label(text: str) -> str:
    """The first line that is not blank, with an ellipsis if there is more."""
    line, _, rest = text.strip().partition("\n")
    line = line.rstrip()
    cut = line[:LABEL_CHARS]
    return cut + " …" if rest or cut != line else cut


def _preview(text: str, language_id: str, editor: EditorCapabilities) -> dict[str, str]:
    if not editor.takes_markdown:
        return {"kind": types.MarkupKind.PlainText, "value": text}
    return {"kind": types.MarkupKind.Markdown, "value": f"```{language_id}\n{text}\n```"}
