"""Which message goes to which handler."""

from collections.abc import Callable
from typing import Any, get_type_hints

from lsprotocol import types

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.convert import ACCEPTED_COMMAND
from mercury_lsp.server.requests import explain, forwarded, notifications, status
from mercury_lsp.server.requests.apply_all_edits import APPLY_ALL_COMMAND
from mercury_lsp.server.requests.code_action import ACTION_OPTIONS, code_action
from mercury_lsp.server.requests.completion import COMPLETION_OPTIONS, completion
from mercury_lsp.server.requests.copilot import account, get_completions, inline_edit, notices
from mercury_lsp.server.requests.execute_command import ANSWER_COMMAND, COMMANDS, execute_command
from mercury_lsp.server.requests.fill_here import FILL_COMMAND
from mercury_lsp.server.requests.inline_completion import inline_completion
from mercury_lsp.server.requests.next_edit import NEXT_EDIT_COMMAND
from mercury_lsp.server.server import MercuryServer


def initialize(server: MercuryServer, params: types.InitializeParams) -> None:
    """Register what the client can use; the protocol class answers with all that is registered when this returns."""
    server.begin(params)
    editor = server.editor.capabilities
    if editor.wants_popup:
        server.feature(types.TEXT_DOCUMENT_COMPLETION, COMPLETION_OPTIONS)(completion)
    if editor.takes_actions:
        server.feature(types.TEXT_DOCUMENT_CODE_ACTION, ACTION_OPTIONS)(code_action)
    offers = [ANSWER_COMMAND] if editor.takes_offers else []
    edits = [FILL_COMMAND, NEXT_EDIT_COMMAND, APPLY_ALL_COMMAND] if editor.applies_edits else []
    for name in (*offers, *edits):
        server.command(name)(COMMANDS[name])


LSP: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: notifications.initialized,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: notifications.did_change_configuration,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: notifications.did_change_watched_files,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: notifications.did_change_workspace_folders,
    types.WORKSPACE_EXECUTE_COMMAND: execute_command,
    types.TEXT_DOCUMENT_DID_OPEN: notifications.did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: notifications.did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: notifications.did_close,
    types.TEXT_DOCUMENT_DID_SAVE: notifications.did_save,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: notifications.did_open_notebook,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notifications.did_change_notebook,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notifications.did_close_notebook,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
}
"""`initialize` adds completion and code actions for clients that can use them."""

BEYOND_LSP: dict[str, Callable[..., Any]] = {
    status.STATUS_METHOD: status.status,
    "mercury/didChangeDiagnostics": forwarded.did_change_diagnostics,
    "mercury/didChangeHighlights": forwarded.did_change_highlights,
    "textDocument/copilotInlineEdit": inline_edit.inline_edit,
    "textDocument/didFocus": notices.did_focus,
    "textDocument/didShowCompletion": notices.did_show,
    "textDocument/didShowInlineEdit": notices.did_show,
    "textDocument/didPartiallyAcceptCompletion": notices.did_partially_accept,
    "getCompletions": get_completions.get_completions,
    "getCompletionsCycling": get_completions.get_completions_cycling,
    "notifyShown": notices.notify_shown,
    "notifyAccepted": notices.notify_accepted,
    "notifyRejected": notices.notify_rejected,
    "checkStatus": account.signed_in,
    "signIn": account.sign_in,
    "signInInitiate": account.sign_in,
    "signInConfirm": account.signed_in,
    "signOut": account.signed_in,
    "setEditorInfo": account.set_editor_info,
    "getVersion": account.get_version,
    "copilot/models": account.models,
}
"""The handlers' annotations say how to structure the parameters."""

# pygls announces the feature only if it has options.
FEATURE_OPTIONS = {types.TEXT_DOCUMENT_INLINE_COMPLETION: types.InlineCompletionOptions(work_done_progress=True)}


def create_server(engines: Engines) -> MercuryServer:
    """A server for one client, which uses one of these engines."""
    server = MercuryServer(engines)
    for method, handler in (LSP | BEYOND_LSP).items():
        server.feature(method, FEATURE_OPTIONS.get(method))(handler)
    for name in (ACCEPTED_COMMAND, status.STATUS_COMMAND, explain.EXPLAIN_COMMAND):
        server.command(name)(COMMANDS[name])
    ours = BEYOND_LSP | {types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion}
    server.protocol.params_types = {method: get_type_hints(handler)["params"] for method, handler in ours.items()}
    return server
