"""textDocument/codeAction: "fill here", "apply next edit" and "Rename all", for any client that can apply edits."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from mercury_lsp.server.requests import execute_command as commands
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.server.structuring import invalid

ACTION_KIND = "refactor.rewrite"


async def code_action(server: MercuryServer, params: types.CodeActionParams) -> list[dict[str, Any]]:
    """The actions at a cursor; "fill here" only without a selection.

    Some clients list actions all the time, so a model is asked for an edit only if the user requests the list.
    """
    await server.session.other_files.decided()
    snapshot = server.session.documents.parsed(params.text_document.uri)
    if not (_is_asked_for(params.context.only) and server.session.settings.allows(snapshot.language_id)):
        return []
    document: dict[str, Any] = {"textDocument": {"uri": snapshot.uri, "version": snapshot.version}}
    found: list[tuple[str, str, dict[str, Any]]] = []
    is_asked = params.context.trigger_kind == types.CodeActionTriggerKind.Invoked
    if await server.suggester.has_next_edit(snapshot, is_asked):
        found.append((commands.NEXT_EDIT_TITLE, commands.NEXT_EDIT_COMMAND, document))
    if (renaming := server.suggester.unfinished_renaming(snapshot)) is not None and renaming.remaining > 1:
        found.append((commands.apply_all_title(renaming), commands.APPLY_ALL_COMMAND, document))
    if _is_cursor(params.range):
        position = {"line": params.range.start.line, "character": params.range.start.character}
        found.append((commands.FILL_TITLE, commands.FILL_COMMAND, document | {"position": position}))
    listed = [{"title": title, "command": name, "arguments": [argument]} for title, name, argument in found]
    if not server.editor.capabilities.takes_action_literals:
        return listed
    return [{"title": each["title"], "kind": ACTION_KIND, "command": each} for each in listed]


def _is_cursor(span: types.Range) -> bool:
    """Whether nothing is selected; a block cursor covers one character, of one or two UTF-16 units."""
    return span.start.line == span.end.line and 0 <= span.end.character - span.start.character <= 2


def _is_asked_for(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether our kind is one of these or below one. Raises RpcError."""
    for each in only or ():
        if not isinstance(each, str):  # lsprotocol lets anything pass here
            raise invalid(f"context.only holds {each!r}; it must hold strings")
    return only is None or any(not each or f"{ACTION_KIND}.".startswith(each + ".") for each in only)
