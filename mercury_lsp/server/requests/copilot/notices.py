"""What clients tell of suggestions and windows: for the statistics. Suggestions themselves go by the edits alone, for
not every client reports."""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server.session import MercuryServer


@attrs.define
class Focus:
    """The document is left out when none has the focus."""

    text_document: types.TextDocumentIdentifier | None = None


@attrs.define
class Item:
    """The item that was shown; some clients send only its command."""

    command: types.Command | None = None

    @property
    def suggestion_id(self) -> str:
        """Empty if the client left it out."""
        match self.command:
            case types.Command(arguments=[str() as found, *_]):
                return found
        return ""


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
    """From now on only what the client tells of counts as shown."""
    server.statistics.observer.reported_shown(params.item.suggestion_id)


def did_partially_accept(server: MercuryServer, params: PartlyAccepted) -> None:
    """The edit tells which part remains."""
    server.statistics.observer.reported_accepted(params.item.suggestion_id, in_part=True)


def notify_shown(server: MercuryServer, params: OneNotice) -> str:
    """The same as didShowCompletion."""
    server.statistics.observer.reported_shown(params.uuid)
    return "OK"


def notify_accepted(server: MercuryServer, params: OneNotice) -> str:
    """With a length it may be a part; the edits tell which."""
    server.statistics.observer.reported_accepted(params.uuid, in_part=params.accepted_length is not None)
    return "OK"


def notify_rejected(server: MercuryServer, params: ManyNotices) -> str:
    """A fill that was not taken may be offered again where it fits; the last change is not, in the same place."""
    for each in params.uuids:
        server.statistics.observer.reported_rejected(each)
        server.completer.next_edits.dismissed(each)
    return "OK"
