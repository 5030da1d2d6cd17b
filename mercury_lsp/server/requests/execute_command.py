"""workspace/executeCommand: runs one of our commands."""

import inspect
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.server.convert import ACCEPTED_COMMAND
from mercury_lsp.server.requests.apply_all_edits import APPLY_ALL_COMMAND, apply_all_edits
from mercury_lsp.server.requests.explain import EXPLAIN_COMMAND, explain
from mercury_lsp.server.requests.fill_here import FILL_COMMAND, fill_here
from mercury_lsp.server.requests.next_edit import NEXT_EDIT_COMMAND, next_edit
from mercury_lsp.server.requests.status import STATUS_COMMAND, status_command
from mercury_lsp.server.server import MercuryServer

ANSWER_COMMAND = "mercury.answerOffer"
"""Hands over the user's answer to `mercury/offerModel`."""


async def execute_command(server: MercuryServer, params: types.ExecuteCommandParams) -> Any:
    """The command's result; also runs as a notification, by which one client reports acceptance."""
    command = COMMANDS.get(params.command)
    if command is None:
        raise JsonRpcInvalidParams(f"there is no command {params.command!r}; there are {', '.join(COMMANDS)}")
    result = command(server, params.work_done_token, *(params.arguments or ()))
    return await result if inspect.isawaitable(result) else result


def accepted(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> None:
    """The user accepted a suggestion: [id], or [id, length] for its first `length` UTF-16 units."""
    match arguments:
        case [str() as suggestion_id]:
            server.session.suggestion_accepted(suggestion_id)
        case [str() as suggestion_id, int()]:  # the edits show which part remains
            server.session.statistics.observer.reported_accepted(suggestion_id, in_part=True)
        case _:
            raise JsonRpcInvalidParams(f"{ACCEPTED_COMMAND} takes [id] or [id, accepted length]")


def answer_offer(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> None:
    """Begin the download of a larger model, or remember that the user does not want it."""
    match arguments:
        case ["yes" | "notNow" | "never" as answer]:
            server.configuration.larger_model.take(answer)
        case _:
            raise JsonRpcInvalidParams(f'{ANSWER_COMMAND} takes ["yes"], ["notNow"] or ["never"]')


COMMANDS: dict[str, Callable[..., Any]] = {
    ACCEPTED_COMMAND: accepted,
    ANSWER_COMMAND: answer_offer,
    STATUS_COMMAND: status_command,
    EXPLAIN_COMMAND: explain,
    FILL_COMMAND: fill_here,
    NEXT_EDIT_COMMAND: next_edit,
    APPLY_ALL_COMMAND: apply_all_edits,
}
