"""Which message goes to which handler. The handlers' annotations say how to structure the parameters."""

from collections.abc import Callable

from lsprotocol import types

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.connection import Handler
from mercury_lsp.server.requests import copilot, notifications, status
from mercury_lsp.server.requests.execute_command import execute_command
from mercury_lsp.server.requests.initialize import initialize
from mercury_lsp.server.requests.inline_completion import inline_completion
from mercury_lsp.server.requests.inline_edit import inline_edit
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
    "mercury/didChangeDiagnostics": notifications.did_change_diagnostics,
    "mercury/didChangeHighlights": notifications.did_change_highlights,
    "textDocument/copilotInlineEdit": inline_edit,
    "textDocument/didFocus": copilot.did_focus,
    "textDocument/didShowCompletion": copilot.did_show,
    "textDocument/didShowInlineEdit": copilot.did_show,
    "textDocument/didPartiallyAcceptCompletion": copilot.did_partially_accept,
    "getCompletions": copilot.get_completions,
    "getCompletionsCycling": copilot.get_completions_cycling,
    "notifyShown": copilot.notify_shown,
    "notifyAccepted": copilot.notify_accepted,
    "notifyRejected": copilot.notify_rejected,
    "checkStatus": copilot.signed_in,
    "signIn": copilot.sign_in,
    "signInInitiate": copilot.sign_in,
    "signInConfirm": copilot.signed_in,
    "signOut": copilot.signed_in,
    "setEditorInfo": copilot.set_editor_info,
    "getVersion": copilot.get_version,
    "copilot/models": copilot.models,
}
"""`initialize` adds completion and code actions for clients that can use them."""


def create_server(engines: Engines, write: Callable[[bytes], object]) -> MercuryServer:
    """A server for one client, which uses one of these engines; `write` sends bytes to the client."""
    return MercuryServer(engines, HANDLERS, write)
