"""The command mercury.explain: why the last question for a next edit had no answer, or no other one."""

from typing import Any

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

EXPLAIN_COMMAND = "mercury.explain"

NOTHING = "no next edit was asked for, or nothing spoke against one"


def explain(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> list[str]:
    """The reasons, which the user is shown too; takes no arguments."""
    reasons = list(server.session.completer.next_edits.silence) or [NOTHING]
    message = f"Mercury: {'; '.join(reasons)}"
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message))
    return reasons
