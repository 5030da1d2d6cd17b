"""initialize: what the server offers depends on what the client can do."""

from lsprotocol import types

from mercury_lsp.server.requests.apply_all_edits import APPLY_ALL_COMMAND, apply_all_edits
from mercury_lsp.server.requests.code_action import ACTION_OPTIONS, code_action
from mercury_lsp.server.requests.completion import COMPLETION_OPTIONS, completion
from mercury_lsp.server.requests.execute_command import ANSWER_COMMAND, answer_offer
from mercury_lsp.server.requests.fill_here import FILL_COMMAND, fill_here
from mercury_lsp.server.requests.next_edit import NEXT_EDIT_COMMAND, next_edit
from mercury_lsp.server.server import MercuryServer


def initialize(server: MercuryServer, params: types.InitializeParams) -> None:
    """Register the features; the protocol class answers with all that are registered when this returns."""
    server.begin(params)
    editor = server.editor.capabilities
    if editor.wants_popup:
        server.feature(types.TEXT_DOCUMENT_COMPLETION, COMPLETION_OPTIONS)(completion)
    if editor.takes_offers:
        server.command(ANSWER_COMMAND)(answer_offer)
    if editor.applies_edits:
        server.command(FILL_COMMAND)(fill_here)
        server.command(NEXT_EDIT_COMMAND)(next_edit)
        server.command(APPLY_ALL_COMMAND)(apply_all_edits)
    if editor.takes_actions:
        server.feature(types.TEXT_DOCUMENT_CODE_ACTION, ACTION_OPTIONS)(code_action)
