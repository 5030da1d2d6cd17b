"""Which message goes to which handler. The handlers' annotations say how to structure the parameters."""

from collections.abc import Callable

from lsprotocol import types

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.connection import Handler
from mercury_lsp.server.requests import forwarded, notifications, status
from mercury_lsp.server.requests.copilot import account, get_completions, inline_edit, notices
from mercury_lsp.server.requests.execute_command import execute_command
from mercury_lsp.server.requests.initialize import initialize
from mercury_lsp.server.requests.inline_completion import inline_completion
from mercury_lsp.server.server import MercuryServer

HANDLERS: dict[str, Handler] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: notifications.initialized,
    types.SHUTDOWN: notifications.shutdown,
    types.EXIT: notifications.exit_,
    types.CANCEL_REQUEST: notifications.cancel_request,
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: notifications.cancel_work,
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
"""`initialize` adds completion and code actions for clients that can use them."""


def create_server(engines: Engines, write: Callable[[bytes], object]) -> MercuryServer:
    """A server for one client, which uses one of these engines; `write` sends bytes to the client."""
    return MercuryServer(engines, HANDLERS, write)
