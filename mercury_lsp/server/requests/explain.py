"""The command mercury.explain: why nothing is shown in a document, at its cursor and as a next edit."""

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer
from mercury_lsp.server.structuring import argument

EXPLAIN_COMMAND = "mercury.explain"

NOTHING = "nothing was requested here, or nothing spoke against showing it"


@attrs.define
class Explain:
    """The command's one argument, which is optional."""

    text_document: types.TextDocumentIdentifier | None = None
    """By default the document opened, edited or asked about last."""
    quiet: bool = False
    """Whether the client shows the answer itself."""


def explain(server: MercuryServer, params: types.ExecuteCommandParams) -> list[str]:
    """The reasons, which are also shown to the user unless the client does that. Raises UnknownDocument."""
    asked = argument(params, Explain)
    named = asked.text_document
    found = reasons(server, named.uri if named is not None else server.session.last_uri) or [NOTHING]
    if not asked.quiet:
        server.editor.show_outcome(f"Mercury: {'; '.join(found)}")
    return found


def reasons(server: MercuryServer, uri: str) -> list[str]:
    """The known reasons why nothing is shown in a document, "" for no document."""
    if (why := server.why_no_suggestions(uri)) is not None:
        return [why]
    status, completer = server.status.current, server.session.completer
    waits = [status.message] if completer.engine is None and status.message else []
    at_cursor = [f"text at the cursor: {why}"] if (why := completer.silences.get(uri)) else []
    off = [] if server.session.settings.next_edits else ["next edits are switched off by mercury.nextEdits"]
    return [*waits, *at_cursor, *off, *completer.next_edits.reasons(uri)]
