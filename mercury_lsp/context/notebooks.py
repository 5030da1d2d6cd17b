"""Notebooks: their cells in order, and the text around a cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import chunk_without_secrets
from mercury_lsp.documents.uris import path_of

CELL_SCHEME = "vscode-notebook-cell:"
"""Of cells sent as documents without their notebook; the fragments of their uris are in order."""

MARKDOWN = "markdown"

MOST_CELLS = 32
"""Cells that are read on either side of one."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a cell."""

    snapshot: Snapshot
    number: int
    before: str = ""
    after: str = ""
    """Blank lines to the next cells, in front of the text and behind it."""

    @property
    def text(self) -> str:
        return self.snapshot.chunks[self.number]

    def block(self) -> str:
        """The text without secrets."""
        chunks, language_id = self.snapshot.chunks, self.snapshot.language_id
        return self.before + with_line_feeds(chunk_without_secrets(chunks, self.number, language_id)) + self.after


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The cells above and below one, read as the text around it."""

    above: Sequence[Snapshot] = ()
    below: Sequence[Snapshot] = ()

    def chunks_above(self) -> list[Chunk]:
        return [
            Chunk(cell, number, after=_gap(cell) if number == len(cell.chunks) - 1 else "")
            for cell in self.above
            for number in range(len(cell.chunks))
        ]

    def chunks_below(self, own: Snapshot) -> list[Chunk]:
        """`own`: the cell itself."""
        return [
            Chunk(cell, number, before="" if number else _gap(previous))
            for previous, cell in zip((own, *self.below), self.below, strict=False)
            for number in range(len(cell.chunks))
        ]


NO_NEIGHBOURS = Neighbours()


class Notebooks:
    """A client's notebooks, synchronised or with their cells opened as documents."""

    def __init__(self) -> None:
        self._cells: dict[str, list[str]] = {}
        """The uris of a notebook's cells in order, by its uri; synchronised ones include markdown."""
        self._synchronised: set[str] = set()
        self._notebook: dict[str, str] = {}
        """By cell."""

    def synchronise(self, notebook: str, start: int, removed: int, added: Sequence[str]) -> None:
        """Replace `removed` cells of a notebook, from `start` on."""
        cells = self._cells.setdefault(notebook, [])
        self._synchronised.add(notebook)
        for cell in cells[start : start + removed]:
            self._notebook.pop(cell, None)
        for cell in added:
            self.closed(cell)
        cells[start : start + removed] = added
        self._notebook |= dict.fromkeys(cells, notebook)

    def forget(self, notebook: str) -> list[str]:
        """A synchronised notebook was closed; returns its cells."""
        self._synchronised.discard(notebook)
        cells = self._cells.pop(notebook, [])
        for cell in cells:
            self._notebook.pop(cell, None)
        return cells

    def opened(self, uri: str) -> None:
        """A document was opened, perhaps a cell of a notebook that is not synchronised."""
        if uri.startswith(CELL_SCHEME) and uri not in self._notebook:
            notebook = uri.partition("#")[0]
            self._notebook[uri] = notebook
            cells = self._cells.setdefault(notebook, [])
            cells.append(uri)
            cells.sort()

    def file_of(self, uri: str) -> Path | None:
        """The file of a document, or of its notebook, if it has one."""
        notebook = self._notebook.get(uri, uri)
        return path_of("file:" + notebook.removeprefix(CELL_SCHEME) if notebook.startswith(CELL_SCHEME) else notebook)

    def are_together(self, uri: str, other: str) -> bool:
        """Whether two documents are cells of one notebook."""
        notebook = self._notebook.get(uri)
        return notebook is not None and notebook == self._notebook.get(other)

    def around(self, uri: str) -> tuple[Iterator[str], Iterator[str]]:
        """The cells above and below one, each from the nearest on."""
        cells = self._cells.get(self._notebook.get(uri, ""), [])
        if uri not in cells:
            return iter(()), iter(())
        at = cells.index(uri)
        return reversed(cells[max(0, at - MOST_CELLS) : at]), iter(cells[at + 1 : at + 1 + MOST_CELLS])

    def closed(self, cell: str) -> None:
        """A document was closed, or became a synchronised cell; a synchronised cell keeps its place."""
        notebook = self._notebook.get(cell)
        if notebook is not None and notebook not in self._synchronised:
            self._cells[notebook].remove(cell)
            del self._notebook[cell]
            if not self._cells[notebook]:
                del self._cells[notebook]


def _gap(cell: Snapshot) -> str:
    """The end of a cell's last line, if it has none, and a blank line."""
    return "\n" if cell.slice(cell.length - 1, cell.length) in ("\n", "\r") else "\n\n"
