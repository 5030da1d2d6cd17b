"""One function per message of the client; each only translates."""

import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from mercury_engine.errors import Cancelled
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.convert import ACCEPTED, beyond, to_lsp
from mercury_lsp.server import MercuryServer
from mercury_lsp.worker import LoadEngine, load_engine

logger = logging.getLogger(__name__)


def create_server(load: LoadEngine = load_engine) -> MercuryServer:
    """A server that answers; load makes its engine."""
    server = MercuryServer(load)
    for method, handler in FEATURES.items():
        server.feature(method, OPTIONS.get(method))(handler)
    server.command(ACCEPTED)(accepted)
    return server


def initialize(server: MercuryServer, params: types.InitializeParams) -> None:
    """Answered by the protocol class."""
    server.begin(params)


async def initialized(server: MercuryServer, params: types.InitializedParams) -> None:
    """The client listens now: ask for its settings and load the model."""
    await server.reconfigure()


async def did_change_configuration(server: MercuryServer, params: types.DidChangeConfigurationParams) -> None:
    """New settings, in the message or to be asked for."""
    await server.reconfigure(params.settings)


def did_open(server: MercuryServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document's text is ours from now on."""
    server.completer.forget(params.text_document.uri)
    server.documents.open(params.text_document)


def did_change(server: MercuryServer, params: types.DidChangeTextDocumentParams) -> None:
    """Edits of a document."""
    uri, version = params.text_document.uri, params.text_document.version
    server.completer.edited(uri, server.documents.change(uri, version, params.content_changes))
    server.settle_soon(uri)


def did_close(server: MercuryServer, params: types.DidCloseTextDocumentParams) -> None:
    """A document is the client's no more."""
    server.completer.forget(params.text_document.uri)
    server.documents.close(params.text_document.uri)


async def inline_completion(server: MercuryServer, params: types.InlineCompletionParams) -> dict[str, Any]:
    """Ghost text at a cursor."""
    context, snapshot = server.documents.context_at(params.text_document.uri, params.position)
    triggered = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    try:
        suggestions = await server.completer.complete(context, snapshot, triggered)
    except Cancelled:
        raise
    except Exception as error:
        logger.exception("a fill failed")
        server.tell(types.MessageType.Error, f"Mercury: {error}; run mercury-lsp doctor")
        return to_lsp([])
    return to_lsp(beyond(params.context.selected_completion_info, suggestions, snapshot))


def accepted(server: MercuryServer, *arguments: Any) -> None:
    """The user took a suggestion: [id], or [id, length] for its first UTF-16 units only."""
    match arguments:
        case [str() as suggestion_id]:
            server.completer.accepted(suggestion_id)
        case [str(), int()]:
            pass  # the edits tell which part remains
        case _:
            raise JsonRpcInvalidParams(f"{ACCEPTED} takes [id] or [id, accepted length]")


FEATURES: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: initialized,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: did_change_configuration,
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
}
# Without options pygls does not announce the feature.
OPTIONS = {types.TEXT_DOCUMENT_INLINE_COMPLETION: types.InlineCompletionOptions()}
