"""Goes on with an editor's session after the process that relayed for it was killed."""

import json
from dataclasses import dataclass, field

from mercury_lsp.relay.journal import FROM_EDITOR, STATE, Journal
from mercury_lsp.relay.session import Session
from mercury_lsp.transport.framing import Decoder, Unreadable


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where an editor and its relay are."""

    session: Session = field(default_factory=Session)
    decoder: Decoder = field(default_factory=Decoder)
    """Holds the beginning of the editor's next message."""
    unwritten: bytes = b""
    """The rest of what the editor was being sent."""
    is_resumed: bool = False


def resumed(journal: Journal | None) -> Conversation:
    """The conversation that a journal holds; a new one if it holds nothing."""
    if journal is None or journal.is_empty:
        return Conversation()
    session, from_editor, for_editor = Session(), Decoder(), Decoder()
    for record in journal.records():
        if record.kind == STATE:
            session = Session.of(json.loads(record.data))
        elif record.kind == FROM_EDITOR:
            for message in from_editor.feed(record.data):
                if not isinstance(message, Unreadable):
                    session.hear_client(message)
        else:
            for message in for_editor.feed(record.data):
                session.hear_daemon(message)
    return Conversation(session, from_editor, journal.unwritten(), is_resumed=True)
