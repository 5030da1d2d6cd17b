"""Clients' reports about suggestions and windows, for the statistics; completion itself relies on edits alone."""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


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
