"""The command by which an editor hands over its user's answer to `mercury/offerModel`."""

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.server.server import MercuryServer

ANSWER_COMMAND = "mercury.answerOffer"


def answer_offer(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> None:
    """Begin the download, or keep that the user does not want it."""
    match arguments:
        case ["yes" | "notNow" | "never" as answer]:
            server.configuration.larger_model.take(answer)
        case _:
            raise JsonRpcInvalidParams(f'{ANSWER_COMMAND} takes ["yes"], ["notNow"] or ["never"]')
