"""workspace/executeCommand: runs one of our commands.

"Fill here", "apply next edit" and "Rename all", which finishes the last renaming, edit the document.
"""

import inspect
from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.completion.suggestions import Renaming, Suggestion
from mercury_lsp.documents.chunked_text import with_plain_breaks
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.server.connection import Handler
from mercury_lsp.server.convert import ACCEPTED_COMMAND
from mercury_lsp.server.requests.status import StatusParams, status
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.server.structuring import argument, invalid

FILL_COMMAND, FILL_TITLE = "mercury.fill", "Mercury: fill here"
NEXT_EDIT_COMMAND, NEXT_EDIT_TITLE = "mercury.nextEdit", "Mercury: apply next edit"
APPLY_ALL_COMMAND = "mercury.applyAllEdits"

ANSWER_COMMAND = "mercury.answerOffer"
"""Hands over the user's answer to `mercury/offerModel`."""

CHANGED_REASON = "the document has changed; ask again"

NO_REASON = "nothing was requested here, or nothing spoke against showing it"


@attrs.define
class EditDocument:
    """The argument of commands that edit; without a version the current one counts."""

    text_document: types.OptionalVersionedTextDocumentIdentifier


@attrs.define
class FillHere(EditDocument):
    """The argument of "fill here"."""

    position: types.Position


@attrs.define
class Explain:
    """The one argument of `mercury.explain`, which is optional."""

    text_document: types.TextDocumentIdentifier | None = None
    """By default the document opened, edited or asked about last."""
    quiet: bool = False
    """Whether the client shows the answer itself."""


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


def status_command(server: MercuryServer, params: types.ExecuteCommandParams) -> dict[str, Any]:
    """The answer to mercury/status, for clients that can only run commands; takes its parameters, or none."""
    return status(server, argument(params, StatusParams))


def explain(server: MercuryServer, params: types.ExecuteCommandParams) -> list[str]:
    """Why nothing is shown in a document, at its cursor and as a next edit. Raises UnknownDocument.

    The reasons are also shown to the user unless the client does that.
    """
    asked = argument(params, Explain)
    uri = server.session.last_uri if asked.text_document is None else asked.text_document.uri
    reasons = _reasons(server, uri) or [NO_REASON]
    if not asked.quiet:
        server.editor.show_outcome(f"Mercury: {'; '.join(reasons)}")
    return reasons


def _reasons(server: MercuryServer, uri: str) -> list[str]:
    """The known reasons why nothing is shown in a document, "" for no document."""
    if (why := server.why_no_suggestions(uri)) is not None:
        return [why]
    message, completer = server.status.current.message, server.session.completer
    waits = [message] if completer.engine is None and message else []
    at_cursor = [f"text at the cursor: {why}"] if (why := completer.silences.get(uri)) else []
    off = [] if server.session.settings.next_edits else ["next edits are switched off by mercury.nextEdits"]
    return [*waits, *at_cursor, *off, *completer.next_edits.reasons(uri)]


def answer_offer(server: MercuryServer, params: types.ExecuteCommandParams) -> None:
    """Begin the download of a larger model, or remember that the user does not want it."""
    match params.arguments:
        case ["yes" | "notNow" | "never" as answer]:
            server.configuration.larger_model.take(answer)
        case _:
            raise invalid(f'{ANSWER_COMMAND} takes ["yes"], ["notNow"] or ["never"]')


async def fill_here(server: MercuryServer, params: types.ExecuteCommandParams) -> dict[str, bool]:
    """Insert a fill at a position of one version of a document, and put the cursor after it."""
    asked, editor = argument(params, FillHere), server.editor
    with editor.progress(params.work_done_token or await editor.new_token(), FILL_TITLE, cancellable=True):
        uri, at = asked.text_document.uri, asked.position
        found, snapshot = await server.suggester.suggest(uri, at, "action", automatic=False)
    if _has_changed(server, asked.text_document, snapshot):
        return _refused(server, CHANGED_REASON)
    if not found:
        return _refused(server, "nothing to fill in here")
    return await _applied(server, snapshot, found[0], FILL_TITLE)


async def next_edit(server: MercuryServer, params: types.ExecuteCommandParams) -> dict[str, bool]:
    """Apply the next edit and put the cursor after it, or go to the most likely place of one."""
    asked, editor = argument(params, EditDocument).text_document, server.editor
    if _has_changed(server, asked):
        return _refused(server, CHANGED_REASON)
    with editor.progress(params.work_done_token or await editor.new_token(), NEXT_EDIT_TITLE, cancellable=True):
        found, snapshot = await server.suggester.next_edit(asked.uri, "action")
    if _has_changed(server, asked, snapshot):
        return _refused(server, CHANGED_REASON)
    if found:
        return await _applied(server, snapshot, found[0], NEXT_EDIT_TITLE)
    if not snapshot.is_parsed:
        return _refused(server, "the file is still being read; ask again")
    if (place := await server.suggester.next_place(asked.uri)) is None:
        return _refused(server, "no next edit")
    if not editor.capabilities.shows_documents:
        of_file = f" of {place.path}" if place.path else ""
        return _refused(server, f"no next edit, but one is likely at line {place.position[0] + 1}{of_file}")
    await editor.go_to(place.snapshot.uri, place.position)
    return _refused(server, "no next edit, but one is likely here")


def apply_all_title(renaming: Renaming) -> str:
    """The title of "Rename all" and of its code action."""
    return f"Rename all {renaming.remaining} remaining {renaming.old} to {renaming.new}"


async def apply_all_edits(server: MercuryServer, params: types.ExecuteCommandParams) -> dict[str, bool | int]:
    """Rename all places that are left; one that looks like a secret stays, and the user is told."""
    asked = argument(params, EditDocument).text_document
    if _has_changed(server, asked):
        return {**_refused(server, CHANGED_REASON)}
    if (found := await server.suggester.rename_all(asked.uri)) is None:
        return {**_refused(server, "no renaming to finish")}
    at = found.snapshot.position_at
    edits = [(at(each.start), at(each.end), each.inserted) for each in found.edits]
    applied = await server.editor.apply(found.snapshot, edits, "Mercury: rename all")
    if found.kept and applied:
        kept = f"Mercury: {found.kept} places stay, because their lines look like secrets"
        server.editor.show_outcome(kept, types.MessageType.Warning)
    return {"applied": applied, "edits": len(edits), "documents": 1, "remaining": found.kept}


def _has_changed(
    server: MercuryServer, asked: types.OptionalVersionedTextDocumentIdentifier, snapshot: Snapshot | None = None
) -> bool:
    """Whether a document is no longer at the version asked about, or no longer the snapshot. Raises UnknownDocument."""
    documents = server.session.documents
    is_asked = asked.version in (None, documents.snapshot(asked.uri).version)
    return not is_asked or (snapshot is not None and not documents.is_current(snapshot))


def _refused(server: MercuryServer, reason: str) -> dict[str, bool]:
    """Tell the user why nothing is applied; the command's answer."""
    server.editor.show_outcome(f"Mercury: {reason}")
    return {"applied": False}


async def _applied(server: MercuryServer, snapshot: Snapshot, suggestion: Suggestion, title: str) -> dict[str, bool]:
    """Insert a suggestion into this version of a document and put the cursor after it; the command's answer."""
    (line, column), end, text = suggestion.start, suggestion.end, suggestion.text
    applied = await server.editor.apply(snapshot, [((line, column), end, text)], title)
    if applied:
        *lines, last = with_plain_breaks(text).split("\n")
        await server.editor.go_to(snapshot.uri, (line + len(lines), utf16_length(last) + (0 if lines else column)))
    return {"applied": applied}


COMMANDS: dict[str, Handler] = {
    ACCEPTED_COMMAND: accepted,
    "mercury.status": status_command,
    "mercury.explain": explain,
    ANSWER_COMMAND: answer_offer,
    FILL_COMMAND: fill_here,
    NEXT_EDIT_COMMAND: next_edit,
    APPLY_ALL_COMMAND: apply_all_edits,
}
