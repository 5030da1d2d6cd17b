"""What clients tell of suggestions and windows. Acceptance is seen in the edits, for not every client reports it."""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server import MercuryServer


@attrs.define
class Focus:
    """The document is left out when none has the focus."""

    text_document: types.TextDocumentIdentifier | None = None


@attrs.define
class Item:
    """The item that was shown; some clients send only its command."""

    command: types.Command | None = None


@attrs.define
class Shown:
    """didShowCompletion and didShowInlineEdit."""

    item: Item


@attrs.define
class PartlyAccepted:
    """didPartiallyAcceptCompletion."""

    item: Item
    accepted_length: int
    """UTF-16 units from the start of the inserted text."""


@attrs.define
class OneNotice:
    """notifyShown and notifyAccepted."""

    uuid: str
    accepted_length: int | None = None
    """Not to be relied on: copilot.lua sends the whole length for a word."""


@attrs.define
class ManyNotices:
    """notifyRejected."""

    uuids: Sequence[str]


def did_focus(server: MercuryServer, params: Focus) -> None:
    """Finish the parse of the document that is looked at before anything is typed in it."""
    if params.text_document is not None:
        server.settle_soon(params.text_document.uri)


def did_show(server: MercuryServer, params: Shown) -> None:
    """Nothing depends on it."""


def did_partially_accept(server: MercuryServer, params: PartlyAccepted) -> None:
    """The edit that follows tells which part remains."""


def notify(server: MercuryServer, params: OneNotice) -> str:
    """The edits tell."""
    return "OK"


def notify_rejected(server: MercuryServer, params: ManyNotices) -> str:
    """What was not taken may be offered again where it fits."""
    return "OK"
