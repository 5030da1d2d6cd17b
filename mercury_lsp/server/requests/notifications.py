"""LSP's notifications, shutdown, and reports of other servers, which LSP sends to clients only; ours forward them."""

from collections.abc import Sequence
from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.roots import path_of
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.server.structuring import invalid

MAX_HIGHLIGHTS = 2_000
"""Longer lists are ignored."""


async def initialized(server: MercuryServer, params: types.InitializedParams) -> None:
    await server.start()


def shutdown(server: MercuryServer, params: Any) -> None:
    """Kate sends it as a notification."""
    server.cancel_all()
    server.stage = "shut down"


def exit_(server: MercuryServer, params: Any) -> None:
    server.stop()


def cancel_request(server: MercuryServer, params: types.CancelParams) -> None:
    server.cancel(params.id)


def cancel_work(server: MercuryServer, params: types.WorkDoneProgressCancelParams) -> None:
    """The user cancels work that is shown."""
    server.editor.cancel_work(params.token)


async def did_change_configuration(server: MercuryServer, params: types.DidChangeConfigurationParams) -> None:
    """The message may lack the settings; then the server asks for them."""
    await server.configuration.update(params.settings)


def did_open(server: MercuryServer, params: types.DidOpenTextDocumentParams) -> None:
    _open(server, params.text_document)


def did_change(server: MercuryServer, params: types.DidChangeTextDocumentParams) -> None:
    document = params.text_document
    server.session.document_changed(document.uri, document.version, params.content_changes)


def did_close(server: MercuryServer, params: types.DidCloseTextDocumentParams) -> None:
    server.session.document_closed(params.text_document.uri)


def did_save(server: MercuryServer, params: types.DidSaveTextDocumentParams) -> None:
    server.session.document_saved(params.text_document.uri)


def did_change_watched_files(server: MercuryServer, params: types.DidChangeWatchedFilesParams) -> None:
    paths = [path_of(change.uri) for change in params.changes]
    server.session.files_changed([path for path in paths if path is not None])


def did_change_workspace_folders(server: MercuryServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    added, removed = ([folder.uri for folder in folders] for folders in (params.event.added, params.event.removed))
    server.session.folders_changed(added, removed)


def did_open_notebook(server: MercuryServer, params: types.DidOpenNotebookDocumentParams) -> None:
    _close_cells(server, server.session.documents.notebooks.forget(params.notebook_document.uri))
    cells = [cell.document for cell in params.notebook_document.cells]
    server.session.documents.notebooks.synchronise(params.notebook_document.uri, 0, 0, cells)
    for item in params.cell_text_documents:
        _open(server, item)


def did_change_notebook(server: MercuryServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Moved cells are closed and opened, or only change places; their texts change like those of documents."""
    if (change := params.change.cells) is None:
        return
    if (structure := change.structure) is not None:
        array, notebooks = structure.array, server.session.documents.notebooks
        cells = [cell.document for cell in array.cells or ()]
        notebooks.synchronise(params.notebook_document.uri, array.start, array.delete_count, cells)
        _close_cells(server, [document.uri for document in structure.did_close or ()])
        for item in structure.did_open or ():
            _open(server, item)
    for each in change.text_content or ():
        server.session.document_changed(each.document.uri, each.document.version, each.changes)


def did_close_notebook(server: MercuryServer, params: types.DidCloseNotebookDocumentParams) -> None:
    server.session.documents.notebooks.forget(params.notebook_document.uri)
    _close_cells(server, [document.uri for document in params.cell_text_documents])


@attrs.define
class ForwardedDiagnostic:
    """A diagnostic; only errors count."""

    range: types.Range
    severity: int


@attrs.define
class DidChangeDiagnosticsParams:
    """All errors of this version of a document; replaces those sent before."""

    text_document: types.VersionedTextDocumentIdentifier
    diagnostics: Sequence[ForwardedDiagnostic]


@attrs.define
class DidChangeHighlightsParams:
    """The answer to `textDocument/documentHighlight` at the cursor, asked before the user changes the name."""

    text_document: types.VersionedTextDocumentIdentifier
    highlights: Sequence[types.DocumentHighlight]


def did_change_diagnostics(server: MercuryServer, params: DidChangeDiagnosticsParams) -> None:
    """mercury/didChangeDiagnostics: errors in a document."""
    if (snapshot := _reported(server, params.text_document)) is not None:
        errors = (each.range for each in params.diagnostics if each.severity == types.DiagnosticSeverity.Error)
        server.session.diagnostics.report(snapshot, (_offsets(snapshot, each)[0] for each in errors))


def did_change_highlights(server: MercuryServer, params: DidChangeHighlightsParams) -> None:
    """mercury/didChangeHighlights: where the name at the cursor stands; True for places where it is written."""
    snapshot = _reported(server, params.text_document)
    if snapshot is not None and len(params.highlights) <= MAX_HIGHLIGHTS:
        is_written = types.DocumentHighlightKind.Write
        places = [(*_offsets(snapshot, each.range), each.kind == is_written) for each in params.highlights]
        server.session.completer.next_edits.highlighted(snapshot, places)


def _reported(server: MercuryServer, document: types.VersionedTextDocumentIdentifier) -> Snapshot | None:
    """The document of a report; None if the report is out of date or unwanted."""
    if document.uri not in server.session.documents:
        return None
    snapshot = server.session.documents.snapshot(document.uri)
    is_wanted = document.version == snapshot.version and server.suggester.allows_next_edits(snapshot)
    return snapshot if is_wanted else None


def _offsets(snapshot: Snapshot, span: types.Range) -> tuple[int, int]:
    start, end = (snapshot.offset_at(each.line, each.character) for each in (span.start, span.end))
    return start, end


def _open(server: MercuryServer, item: types.TextDocumentItem) -> None:
    if not isinstance(item.language_id, str):  # lsprotocol lets anything pass here
        raise invalid(f"languageId is {item.language_id!r}; it must be a string")
    server.session.document_opened(item)


def _close_cells(server: MercuryServer, uris: Sequence[str]) -> None:
    for uri in uris:
        if uri in server.session.documents:
            server.session.document_closed(uri)
