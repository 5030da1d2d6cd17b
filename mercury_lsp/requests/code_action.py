"""textDocument/codeAction: "Mercury: fill here", for any client that can apply edits."""

from collections.abc import Sequence

from lsprotocol import types

from mercury_lsp.requests.fill_here import FILL, TITLE
from mercury_lsp.server import MercuryServer

KIND = types.CodeActionKind.RefactorRewrite

ACTION_OPTIONS = types.CodeActionOptions(code_action_kinds=[KIND])


def code_action(server: MercuryServer, params: types.CodeActionParams) -> Sequence[types.CodeAction | types.Command]:
    """The action at a cursor; the model is asked only when it is chosen, for some clients list actions all the time."""
    snapshot = server.documents.snapshot(params.text_document.uri)
    if not (_is_cursor(params.range) and _is_asked_for(params.context.only)):
        return []
    if not server.completer.settings.allows(snapshot.language_id):
        return []
    place = {
        "textDocument": {"uri": params.text_document.uri, "version": snapshot.version},
        "position": {"line": params.range.start.line, "character": params.range.start.character},
    }
    command = types.Command(TITLE, FILL, arguments=[place])
    if not server.editor.takes_action_literals:
        return [command]
    return [types.CodeAction(TITLE, kind=KIND, command=command)]


def _is_cursor(span: types.Range) -> bool:
    """Nothing is selected; a cursor that is a block covers one character, of one or two UTF-16 units."""
    return span.start.line == span.end.line and 0 <= span.end.character - span.start.character <= 2


def _is_asked_for(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether our kind is below one of these."""
    if only is None:
        return True
    kinds = [kind.value if isinstance(kind, types.CodeActionKind) else kind for kind in only]
    return any(not kind or KIND.value == kind or KIND.value.startswith(kind + ".") for kind in kinds)
