"""initialize: what is offered depends on what the client can do."""

from lsprotocol import types

from mercury_lsp.server.requests.code_action import ACTION_OPTIONS, code_action
from mercury_lsp.server.requests.completion import COMPLETION_OPTIONS, completion
from mercury_lsp.server.requests.fill_here import FILL, fill_here
from mercury_lsp.server.requests.next_edit import NEXT_EDIT, next_edit
from mercury_lsp.server.session import MercuryServer


def initialize(server: MercuryServer, params: types.InitializeParams) -> None:
    """Answered by the protocol class, from what is registered when this returns."""
    server.begin(params)
    if server.editor.wants_popup:
        server.feature(types.TEXT_DOCUMENT_COMPLETION, COMPLETION_OPTIONS)(completion)
    if server.editor.applies_edits:
        server.command(FILL)(fill_here)
        server.command(NEXT_EDIT)(next_edit)
    if server.editor.takes_actions:
        server.feature(types.TEXT_DOCUMENT_CODE_ACTION, ACTION_OPTIONS)(code_action)
