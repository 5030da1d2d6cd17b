"""One function per message of the client; each only translates."""

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from mercury_engine.errors import Cancelled
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.convert import ACCEPTED, beyond, to_lsp

if TYPE_CHECKING:
    from mercury_lsp.server import MercuryServer

logger = logging.getLogger(__name__)

# pygls hands the server to the handlers whose first parameter is called `ls`.


def initialize(ls: "MercuryServer", params: types.InitializeParams) -> None:
    """Answered by the protocol class."""
    ls.begin(params)


async def initialized(ls: "MercuryServer", params: types.InitializedParams) -> None:
    """The client listens now: ask for its settings and load the model."""
    await ls.reconfigure()


async def did_change_configuration(ls: "MercuryServer", params: types.DidChangeConfigurationParams) -> None:
    """New settings, in the message or to be asked for."""
    await ls.reconfigure(params.settings)


def did_open(ls: "MercuryServer", params: types.DidOpenTextDocumentParams) -> None:
    """A document's text is ours from now on."""
    ls.completer.forget(params.text_document.uri)
    ls.documents.open(params.text_document)


def did_change(ls: "MercuryServer", params: types.DidChangeTextDocumentParams) -> None:
    """Edits of a document."""
    uri, version = params.text_document.uri, params.text_document.version
    ls.completer.edited(uri, ls.documents.change(uri, version, params.content_changes))


def did_close(ls: "MercuryServer", params: types.DidCloseTextDocumentParams) -> None:
    """A document is the client's no more."""
    ls.completer.forget(params.text_document.uri)
    ls.documents.close(params.text_document.uri)


async def inline_completion(ls: "MercuryServer", params: types.InlineCompletionParams) -> dict[str, Any]:
    """Ghost text at a cursor."""
    context, snapshot = ls.documents.context_at(params.text_document.uri, params.position)
    triggered = params.context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
    try:
        suggestions = await ls.completer.complete(context, snapshot, triggered)
    except Cancelled:
        raise
    except Exception as error:
        logger.exception("a fill failed")
        ls.tell(types.MessageType.Error, f"Mercury: {error}; run mercury-lsp doctor")
        return to_lsp([])
    return to_lsp(beyond(params.context.selected_completion_info, suggestions, snapshot))


def accepted(ls: "MercuryServer", *arguments: Any) -> None:
    """The user took a suggestion: [id], or [id, length] for its first UTF-16 units only."""
    match arguments:
        case [str() as suggestion_id]:
            ls.completer.accepted(suggestion_id)
        case [str(), int()]:
            pass  # the edits tell which part remains
        case _:
            raise JsonRpcInvalidParams(f"{ACCEPTED} takes [id] or [id, accepted length]")


FEATURES = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: initialized,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: did_change_configuration,
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
}
COMMANDS = {ACCEPTED: accepted}
