"""workspace/executeCommand: runs one of our commands."""

import inspect
from typing import Any

from lsprotocol import types

from mercury_lsp.server.connection import Handler
from mercury_lsp.server.convert import ACCEPTED_COMMAND
from mercury_lsp.server.requests import edit_commands
from mercury_lsp.server.requests.explain import EXPLAIN_COMMAND, explain
from mercury_lsp.server.requests.status import STATUS_COMMAND, status_command
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.server.structuring import invalid

ANSWER_COMMAND = "mercury.answerOffer"
"""Hands over the user's answer to `mercury/offerModel`."""


async def execute_command(server: MercuryServer, params: types.ExecuteCommandParams) -> Any:
    """The command's result; also runs as a notification, by which one client reports acceptance."""
    if (command := COMMANDS.get(params.command)) is None:
        raise invalid(f"there is no command {params.command!r}; there are {', '.join(COMMANDS)}")
    result = command(server, params)
    return await result if inspect.isawaitable(result) else result


def accepted(server: MercuryServer, params: types.ExecuteCommandParams) -> None:
    """The user accepted a suggestion: [id], or [id, length] for its first `length` UTF-16 units."""
    match params.arguments:
        case [str() as suggestion_id]:
            server.session.suggestion_accepted(suggestion_id)
        case [str() as suggestion_id, int()]:  # the edits show which part remains
            server.session.statistics.observer.reported_accepted(suggestion_id, in_part=True)
        case _:
            raise invalid(f"{ACCEPTED_COMMAND} takes [id] or [id, accepted length]")


def answer_offer(server: MercuryServer, params: types.ExecuteCommandParams) -> None:
    """Begin the download of a larger model, or remember that the user does not want it."""
    match params.arguments:
        case ["yes" | "notNow" | "never" as answer]:
            server.configuration.larger_model.take(answer)
        case _:
            raise invalid(f'{ANSWER_COMMAND} takes ["yes"], ["notNow"] or ["never"]')


COMMANDS: dict[str, Handler] = {
    ACCEPTED_COMMAND: accepted,
    STATUS_COMMAND: status_command,
    EXPLAIN_COMMAND: explain,
    ANSWER_COMMAND: answer_offer,
    edit_commands.FILL_COMMAND: edit_commands.fill_here,
    edit_commands.NEXT_EDIT_COMMAND: edit_commands.next_edit,
    edit_commands.APPLY_ALL_COMMAND: edit_commands.apply_all_edits,
}
