"""The dialect of clients that were made for Copilot's language server; see docs/protocol.md for who sends what.

There is no account, so every client is already signed in as a local user. Clients' reports about suggestions and
windows are for the statistics; completion itself relies on edits alone. inline_edit.py answers with edits.
"""

from collections.abc import Sequence
from typing import Any

import attrs
from lsprotocol import types

import mercury_lsp
from mercury_lsp.server.connection import Handler
from mercury_lsp.server.convert import from_line_start, to_position, to_range
from mercury_lsp.server.server import MercuryServer


@attrs.define
class Doc:
    """A document and a position; the version is sent back unchanged."""

    uri: str
    position: types.Position
    version: int | None = None


@attrs.define
class GetCompletionsParams:
    doc: Doc


async def get_completions(server: MercuryServer, params: GetCompletionsParams) -> dict[str, Any]:
    """Ghost text while typing, in the older form."""
    return await _completions(server, params.doc, automatic=True)


async def get_completions_cycling(server: MercuryServer, params: GetCompletionsParams) -> dict[str, Any]:
    """All suggestions, because the user asked."""
    return await _completions(server, params.doc, automatic=False)


async def _completions(server: MercuryServer, doc: Doc, automatic: bool) -> dict[str, Any]:
    found, snapshot = await server.suggester.suggest(doc.uri, doc.position, "inline", automatic)
    version = {} if doc.version is None else {"docVersion": doc.version}
    completions = []
    for each in found:
        whole = from_line_start(each, snapshot)
        position, span = to_position(each.start), to_range(whole.start, whole.end)
        texts = {"uuid": each.id, "text": whole.text, "displayText": each.text}
        completions.append(texts | {"range": span, "position": position} | version)
    return {"completions": completions}


@attrs.define
class Focus:
    """didFocus; no document if none has the focus."""

    text_document: types.TextDocumentIdentifier | None = None


@attrs.define
class Item:
    """The shown item, or only its command."""

    command: types.Command | None = None

    @property
    def suggestion_id(self) -> str:
        """Empty if the client left it out."""
        match self.command:
            case types.Command(arguments=[str() as found, *_]):
                return found
        return ""


@attrs.define
class ItemNotice:
    """didShowCompletion, didShowInlineEdit and didPartiallyAcceptCompletion; its length is read from the edit."""

    item: Item


@attrs.define
class OneNotice:
    """notifyShown and notifyAccepted."""

    uuid: str
    accepted_length: int | None = None
    """Unreliable: copilot.lua sends the whole length for a word."""


@attrs.define
class ManyNotices:
    """notifyRejected."""

    uuids: Sequence[str]


def did_focus(server: MercuryServer, params: Focus) -> None:
    if params.text_document is not None:
        server.session.document_focused(params.text_document.uri)


def did_show(server: MercuryServer, params: ItemNotice) -> None:
    """From now on only reported suggestions count as shown."""
    server.session.statistics.observer.reported_shown(params.item.suggestion_id)


def did_partially_accept(server: MercuryServer, params: ItemNotice) -> None:
    """The edits show which part remains."""
    server.session.statistics.observer.reported_accepted(params.item.suggestion_id, in_part=True)


def notify_shown(server: MercuryServer, params: OneNotice) -> str:
    """The same as didShowCompletion."""
    server.session.statistics.observer.reported_shown(params.uuid)
    return "OK"


def notify_accepted(server: MercuryServer, params: OneNotice) -> str:
    """With a length it may be partial; the edits show which part."""
    server.session.statistics.observer.reported_accepted(params.uuid, in_part=params.accepted_length is not None)
    return "OK"


def notify_rejected(server: MercuryServer, params: ManyNotices) -> str:
    for each in params.uuids:
        server.session.suggestion_rejected(each)
    return "OK"


def models(server: MercuryServer, params: Any) -> list[dict[str, Any]]:
    """copilot/models: the loaded model, if there is one."""
    if (engine := server.session.completer.engine) is None:
        return []
    return [{"id": engine.name, "modelName": engine.name, "scopes": ["completion"], "default": True, "preview": False}]


def _always(answer: Any) -> Handler:
    return lambda server, params: answer


signed_in = _always({"status": "OK", "user": "local"})
"""checkStatus, signInConfirm, and signOut, which changes nothing."""

sign_in = _always({"status": "AlreadySignedIn", "user": "local"})
"""signIn and signInInitiate."""

set_editor_info = _always("OK")
"""setEditorInfo: ignored, because initialize said what matters about the client."""

get_version = _always({"version": mercury_lsp.__version__})
