"""The documents that the client has open, each with its context builder, and the notebooks that they are cells of."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.context.scope import is_blank_before
from mercury_lsp.documents.document import ContentChange, Document, Edit, Snapshot
from mercury_lsp.documents.roots import Roots, path_of
from mercury_lsp.errors import UnknownDocument

CELL_SCHEME = "vscode-notebook-cell:"
"""Of cells sent as documents without their notebook; the fragments of their uris are in order."""

MARKDOWN = "markdown"

MOST_CELLS = 32
"""Cells that are read on either side of one."""


@dataclass(frozen=True, slots=True)
class _Open:
    document: Document
    builder: ContextBuilder
    path: str | None


class OpenDocuments:
    """Open documents by URI. Only those that return a document's own data raise UnknownDocument."""

    def __init__(self) -> None:
        self.roots = Roots()
        """The workspace folders; the model sees paths relative to them."""
        self.notebooks = Notebooks()
        self._open: dict[str, _Open] = {}

    @property
    def uris(self) -> list[str]:
        """The open documents, in the order in which they were opened."""
        return list(self._open)

    def open(self, item: types.TextDocumentItem) -> None:
        """Open a document; one that is open already is replaced."""
        document = Document(item.uri, item.language_id, item.version, item.text)
        self._open[item.uri] = _Open(document, ContextBuilder(), self._path(item.uri))
        self.notebooks.opened(item.uri)

    def change(self, uri: str, version: int, changes: Sequence[ContentChange]) -> list[Edit] | None:
        """Apply the client's changes; returns the edits, or None if one replaced the whole document."""
        return self._find(uri).document.apply(changes, version)

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._find(uri)
        del self._open[uri]
        self.notebooks.closed(uri)

    def oddity(self, uri: str) -> str | None:
        return self._find(uri).document.oddity

    def finish_parsing(self, uri: str) -> None:
        """Do the parsing deferred while the user typed; does nothing for a URI that is not open."""
        if uri in self._open:
            self._open[uri].document.finish_parsing()

    def begin_parsing(self, uri: str) -> bool:
        """Begin to parse a document in slices if it is long; returns whether `parse_a_little` has work to do."""
        return uri in self._open and self._open[uri].document.begin_parsing()

    def parse_a_little(self) -> bool:
        """Do one slice of the parses that have begun; returns whether more is left."""
        return any(each.document.parse_a_little() for each in self._open.values())

    def snapshot(self, uri: str) -> Snapshot:
        """The document as it is now; its tree may be an older version's."""
        return self._find(uri).document.snapshot()

    def parsed(self, uri: str) -> Snapshot:
        """The document as it is now, parsed if the time budget allows."""
        return self._find(uri).document.parsed()

    def context_at(self, uri: str, position: types.Position) -> tuple[CompletionContext, Snapshot]:
        """The context at a position, which is clamped to the document, and its snapshot."""
        found = self._find(uri)
        snapshot = found.document.snapshot()
        offset = snapshot.offset_at(position.line, position.character)
        if found.document.has_new_lines or is_blank_before(snapshot, offset):
            snapshot = found.document.parsed()
        return found.builder.build(snapshot, offset, found.path, *self._cells_around(snapshot)), snapshot

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot's text is still that of the open document."""
        return snapshot.uri in self and self.snapshot(snapshot.uri).source is snapshot.source

    def path(self, uri: str) -> str:
        """The document's path as the model sees it: relative to its workspace folder, or only its name."""
        return self._find(uri).path or ""

    def __contains__(self, uri: str) -> bool:
        return uri in self._open

    def _cells_around(self, snapshot: Snapshot) -> tuple[list[Snapshot], ...]:
        """The cells of the same notebook and language above and below a cell."""
        language_id = snapshot.language_id
        around = ([self.snapshot(uri) for uri in uris if uri in self] for uris in self.notebooks.around(snapshot.uri))
        return tuple(
            [cell for cell in cells if cell.length and cell.language_id == language_id != MARKDOWN] for cells in around
        )

    def _find(self, uri: str) -> _Open:
        if uri not in self._open:
            raise UnknownDocument(f"{uri} is not open; send textDocument/didOpen first")
        return self._open[uri]

    def _path(self, uri: str) -> str | None:
        if (path := path_of(uri)) is None:
            return None
        if (found := self.roots.named(path)) is None:
            return path.name
        named, root = found
        return named.relative_to(root).as_posix()


class Notebooks:
    """A client's notebooks, synchronised or with their cells opened as documents."""

    def __init__(self) -> None:
        self._cells: dict[str, list[str]] = {}
        """The uris of a notebook's cells in order, by its uri; synchronised ones include markdown.

        A notebook that is not synchronised has the uri of its cells without the fragment.
        """

    def synchronise(self, notebook: str, start: int, removed: int, added: Sequence[str]) -> None:
        """Replace `removed` cells of a notebook, from `start` on."""
        for cell in added:
            self.closed(cell)
        self._cells.setdefault(notebook, [])[start : start + removed] = added

    def forget(self, notebook: str) -> list[str]:
        """A synchronised notebook was closed; returns its cells."""
        return self._cells.pop(notebook, [])

    def opened(self, uri: str) -> None:
        """A document was opened, perhaps a cell of a notebook that is not synchronised."""
        if uri.startswith(CELL_SCHEME) and self._notebook_of(uri) is None:
            cells = self._cells.setdefault(uri.partition("#")[0], [])
            cells.append(uri)
            cells.sort()

    def closed(self, uri: str) -> None:
        """A document was closed, or became a synchronised cell; a synchronised cell keeps its place."""
        notebook = self._notebook_of(uri)
        if notebook is not None and notebook.startswith(CELL_SCHEME):
            self._cells[notebook].remove(uri)
            if not self._cells[notebook]:
                del self._cells[notebook]

    def file_of(self, uri: str) -> Path | None:
        """The file of a document, or of its notebook, if it has one."""
        notebook = self._notebook_of(uri) or uri
        return path_of("file:" + notebook.removeprefix(CELL_SCHEME) if notebook.startswith(CELL_SCHEME) else notebook)

    def are_together(self, uri: str, other: str) -> bool:
        """Whether two documents are cells of one notebook."""
        notebook = self._notebook_of(uri)
        return notebook is not None and other in self._cells[notebook]

    def around(self, uri: str) -> tuple[list[str], list[str]]:
        """The cells above and below one, at most `MOST_CELLS` each."""
        if (notebook := self._notebook_of(uri)) is None:
            return [], []
        cells = self._cells[notebook]
        at = cells.index(uri)
        return cells[max(0, at - MOST_CELLS) : at], cells[at + 1 : at + 1 + MOST_CELLS]

    def _notebook_of(self, uri: str) -> str | None:
        return next((notebook for notebook, cells in self._cells.items() if uri in cells), None)
