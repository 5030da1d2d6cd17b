"""textDocument/codeAction: "fill here", "apply next edit" and "Rename all", for any client that can apply edits."""

from collections.abc import Iterator, Sequence

from lsprotocol import types

from mercury_lsp.documents.document import Snapshot
from mercury_lsp.server.requests import apply_all_edits, fill_here, next_edit
from mercury_lsp.server.server import MercuryServer

ACTION_KIND = types.CodeActionKind.RefactorRewrite

ACTION_OPTIONS = types.CodeActionOptions(code_action_kinds=[ACTION_KIND])


async def code_action(
    server: MercuryServer, params: types.CodeActionParams
) -> Sequence[types.CodeAction | types.Command]:
    """The actions at a cursor; "fill here" only without a selection.

    Some clients list actions all the time, so a model is asked for an edit only if the user requests the list.
    """
    await server.session.other_files.decided()
    snapshot = server.session.documents.parsed(params.text_document.uri)
    if not (_is_asked_for(params.context.only) and server.session.settings.allows(snapshot.language_id)):
        return []
    is_asked = params.context.trigger_kind == types.CodeActionTriggerKind.Invoked
    has_edit = await server.suggester.has_next_edit(snapshot, is_asked)
    commands = list(_commands(server, snapshot, params.range, has_edit))
    if not server.editor.capabilities.takes_action_literals:
        return commands
    return [types.CodeAction(command.title, kind=ACTION_KIND, command=command) for command in commands]


def _commands(server: MercuryServer, snapshot: Snapshot, span: types.Range, has_edit: bool) -> Iterator[types.Command]:
    document = {"uri": snapshot.uri, "version": snapshot.version}
    if has_edit:
        yield types.Command(
            next_edit.NEXT_EDIT_TITLE, next_edit.NEXT_EDIT_COMMAND, arguments=[{"textDocument": document}]
        )
    if (renaming := server.suggester.unfinished_renaming(snapshot)) is not None and renaming.remaining > 1:
        title = apply_all_edits.apply_all_title(renaming)
        yield types.Command(title, apply_all_edits.APPLY_ALL_COMMAND, arguments=[{"textDocument": document}])
    if _is_cursor(span):
        position = {"line": span.start.line, "character": span.start.character}
        argument = {"textDocument": document, "position": position}
        yield types.Command(fill_here.FILL_TITLE, fill_here.FILL_COMMAND, arguments=[argument])


def _is_cursor(span: types.Range) -> bool:
    """Whether nothing is selected; a block cursor covers one character, of one or two UTF-16 units."""
    return span.start.line == span.end.line and 0 <= span.end.character - span.start.character <= 2


def _is_asked_for(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether our kind is one of these or below one."""
    if only is None:
        return True
    kinds = [kind.value if isinstance(kind, types.CodeActionKind) else kind for kind in only]
    return any(not kind or ACTION_KIND.value == kind or ACTION_KIND.value.startswith(kind + ".") for kind in kinds)
