"""The command mercury.explain: why the last text at the cursor and the last next edit were not shown."""

from typing import Any

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

EXPLAIN_COMMAND = "mercury.explain"

NOTHING = "nothing was asked for, or nothing spoke against showing it"


def explain(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> list[str]:
    """The reasons, which the user is shown too; takes no arguments."""
    completer = server.session.completer
    at_cursor = [f"text at the cursor: {completer.silence}"] if completer.silence else []
    reasons = [*at_cursor, *completer.next_edits.silence] or [NOTHING]
    message = f"Mercury: {'; '.join(reasons)}"
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
    return reasons
