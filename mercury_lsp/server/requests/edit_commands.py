"""The commands that edit: "fill here", "apply next edit", and "Rename all", which finishes the last renaming."""

import attrs
from lsprotocol import types

from mercury_lsp.completion.suggestions import Renaming, Suggestion
from mercury_lsp.documents.chunked_text import with_plain_breaks
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.server.structuring import argument

FILL_COMMAND, FILL_TITLE = "mercury.fill", "Mercury: fill here"
NEXT_EDIT_COMMAND, NEXT_EDIT_TITLE = "mercury.nextEdit", "Mercury: apply next edit"
APPLY_ALL_COMMAND = "mercury.applyAllEdits"

CHANGED_REASON = "the document has changed; ask again"


@attrs.define
class FillHere:
    """The argument of "fill here"."""

    text_document: types.VersionedTextDocumentIdentifier
    position: types.Position


@attrs.define
class EditDocument:
    """The argument of the other two; without a version the current one counts."""

    text_document: types.OptionalVersionedTextDocumentIdentifier


def apply_all_title(renaming: Renaming) -> str:
    """The title of "Rename all" and of its code action."""
    return f"Rename all {renaming.remaining} remaining {renaming.old} to {renaming.new}"


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
        return _refused(server, f"no next edit, but one is likely at line {place.position[0] + 1} of {place.path}")
    await editor.go_to(place.snapshot.uri, place.position)
    return _refused(server, "no next edit, but one is likely here")


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
    server: MercuryServer,
    asked: types.VersionedTextDocumentIdentifier | types.OptionalVersionedTextDocumentIdentifier,
    snapshot: Snapshot | None = None,
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
