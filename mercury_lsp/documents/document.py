"""An open document that the client edits, and its immutable snapshots with a syntax tree."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from lsprotocol import types
from tree_sitter import Tree

from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS, ChunkedText
from mercury_lsp.documents.languages import language, new_parser, parser
from mercury_lsp.documents.parsing import PARSE_SLICE_SECONDS, edited_tree, parse, parse_in_slices

MAX_PARSED_BYTES = 2_000_000
"""Largest parsed file; larger ones, and files with very long lines, are treated as plain text."""

KEYSTROKE_PARSE_SECONDS = 0.002
"""Budget of a parse after an edit. An edit that breaks the syntax of 20,000 lines would take 20 to 170 ms."""

MAX_SKIPPED_VERSIONS = 16
"""Most versions left unparsed after a parse ran out of time, because the next one most likely would, too."""

PAUSE_PARSE_SECONDS = 0.3
"""Budget of a parse while the user pauses."""

FIRST_PARSE_SECONDS = 1.0
"""Budget of the first parse; a document that takes longer is treated as plain text."""

MIN_SLICED_BYTES = 100_000
"""Shortest document that is parsed in slices; parsing this much takes 10 to 40 ms."""

_BREAKS = frozenset("\r\n")

ContentChange = types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of text; `start` is an offset (code points) in the document before the edit."""

    start: int
    removed: str
    inserted: str

    @property
    def end(self) -> int:
        """End offset of the removed text, before the edit."""
        return self.start + len(self.removed)

    @property
    def new_end(self) -> int:
        """End offset of the inserted text, after the edit."""
        return self.start + len(self.inserted)

    @property
    def size(self) -> int:
        """Characters of both texts."""
        return len(self.removed) + len(self.inserted)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a document; offsets are code points, positions (line, UTF-16 column), all clamped."""

    uri: str
    language_id: str
    version: int
    source: ChunkedText
    tree: Tree | None
    """None for plain text. Its offsets are bytes (`source.byte_of`); nodes with `has_changes` were edited since the
    last parse."""
    is_parsed: bool
    """Whether the tree was parsed from this text; otherwise it is an older tree, edited since."""

    @property
    def chunks(self) -> tuple[str, ...]:
        """The text's chunks; a chunk that no edit touched is the same object in every snapshot."""
        return self.source.chunks

    @property
    def text(self) -> str:
        """The whole text, joined on every access."""
        return "".join(self.source.chunks)

    @property
    def length(self) -> int:
        """Code points."""
        return self.source.length

    def offset_at(self, line: int, utf16_col: int) -> int:
        """Offset of a position; inside a surrogate pair, the offset before the pair."""
        return self.source.offset_at(line, utf16_col)

    def position_at(self, offset: int) -> tuple[int, int]:
        """Line and UTF-16 column of an offset."""
        return self.source.position_at(offset)

    def slice(self, start: int, end: int) -> str:
        return self.source.slice(start, end)

    def line_at(self, offset: int) -> tuple[str, int]:
        """The line that contains offset, without its terminator, and its start offset."""
        start, end = self.source.line_bounds(offset)
        return self.source.slice(start, end), start


@dataclass(slots=True)
class _Parsing:
    """A parse in slices, and the edits since it began as (text before, text after, start, end)."""

    slices: Generator[None, None, Tree | None]
    edits: list[tuple[ChunkedText, ChunkedText, int, int]] = field(default_factory=list)


class Document:
    """One open document; for the main thread only."""

    def __init__(self, uri: str, language_id: str, version: int, text: str):
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self._is_dropped = len(text) > MAX_DOCUMENT_CHARS
        """The text is too long to be kept; true until the client sends a shorter one."""
        self._source = ChunkedText.of("" if self._is_dropped else text)
        self._tree: Tree | None = None
        self._is_parsed = False
        self.has_new_lines = False
        """Line breaks changed since the last parse, so other definitions may enclose a line."""
        self._is_plain = not language(language_id).grammar
        self._versions_to_skip = self._skipped_versions = 0
        """Versions in a row to leave unparsed: doubles after each parse that ran out of time."""
        self._tried: ChunkedText | None = None
        """The newest version for which a tree was requested."""
        self._parsing: _Parsing | None = None
        self._snapshot: Snapshot | None = None

    def apply(self, changes: Sequence[ContentChange], version: int) -> list[Edit] | None:
        """Apply LSP content changes in order; each range refers to the text after the previous change.

        Returns the resulting edits, or None if a change replaced the whole document.
        """
        edits: list[Edit] | None = []
        for change in changes:
            is_too_long = len(change.text) > MAX_DOCUMENT_CHARS
            if not isinstance(change, types.TextDocumentContentChangePartial) or is_too_long:
                edits, self._is_dropped = None, is_too_long
                self._replace(*self._source.difference("" if is_too_long else change.text))
            elif self._is_dropped:
                edits = None
            else:
                start, end = self._offsets(change.range)
                if edits is not None:
                    edits.append(Edit(start, self._source.slice(start, end), change.text))
                self._replace(start, end, change.text)
        self.version = version
        self._snapshot = None
        return edits

    @property
    def oddity(self) -> str | None:
        """Why nothing is suggested in this document, as the end of a sentence; None if something is."""
        if self._is_dropped or self._source.length > MAX_DOCUMENT_CHARS:
            return f"has more than {MAX_DOCUMENT_CHARS:,} characters"
        return "has a line of more than 50,000 characters" if self._source.has_long_line else None

    def snapshot(self) -> Snapshot:
        """The current document with the tree of the last parse, which suffices for most keys."""
        if self._snapshot is None:
            if self._tree is None and self._parsing is None:
                self._parse(FIRST_PARSE_SECONDS)
            self._snapshot = Snapshot(
                self.uri, self.language_id, self.version, self._source, self._tree, self._is_parsed
            )
        return self._snapshot

    def parsed(self) -> Snapshot:
        """The current document, parsed if the time budget allows; at most one attempt per version."""
        if not self.snapshot().is_parsed:
            self._parse_within_budget()
        return self.snapshot()

    def finish_parsing(self) -> None:
        """Do the parsing deferred while the user typed; later snapshots have its tree."""
        while self.parse_a_little():
            pass
        if not self._is_parsed:
            self._parse(PAUSE_PARSE_SECONDS if self._tree else FIRST_PARSE_SECONDS)
            self._versions_to_skip = 0 if self._is_parsed else self._versions_to_skip

    def begin_parsing(self) -> bool:
        """Begin to parse a long document that is not parsed; returns whether `parse_a_little` has work to do.

        Until it is done, snapshots have the last tree, or none.
        """
        is_long = self._source.byte_length >= MIN_SLICED_BYTES and not self._is_unparsed()
        if self._parsing is None and not self._is_parsed and is_long:
            if self._tree is not None:
                self._parse(PARSE_SLICE_SECONDS)  # mostly enough after a few edits
            if not self._is_parsed:
                slices = parse_in_slices(new_parser(self.language_id), self._source, FIRST_PARSE_SECONDS)
                self._parsing = _Parsing(slices)
        return self._parsing is not None

    def parse_a_little(self) -> bool:
        """Do one slice of a parse, of about `PARSE_SLICE_SECONDS`; returns whether more is left."""
        if (parsing := self._parsing) is None:
            return False
        try:
            next(parsing.slices)
            return True
        except StopIteration as done:
            self._parsing = None
            tree: Tree | None = done.value
            if tree is not None:
                for edit in parsing.edits:
                    tree = edited_tree(tree, *edit)
            self._take(tree, is_current=not parsing.edits)
            return False

    def _is_unparsed(self) -> bool:
        """Whether it is plain text, too long, or has a very long line."""
        return self._is_plain or self._source.byte_length > MAX_PARSED_BYTES or self._source.has_long_line

    def _parse_within_budget(self) -> None:
        if self._tried is self._source or (self._tree is None and self._parsing is not None):
            return
        self._tried = self._source
        if self._skipped_versions < self._versions_to_skip:
            self._skipped_versions += 1
            return
        self._parse(KEYSTROKE_PARSE_SECONDS)
        self._skipped_versions = 0
        self._versions_to_skip = 0 if self._is_parsed else min(MAX_SKIPPED_VERSIONS, 2 * self._versions_to_skip or 1)

    def _offsets(self, span: types.Range) -> tuple[int, int]:
        start = self._source.offset_at(span.start.line, span.start.character)
        if (span.end.line, span.end.character) == (span.start.line, span.start.character):
            return start, start
        end = self._source.offset_at(span.end.line, span.end.character)
        return min(start, end), max(start, end)

    def _replace(self, start: int, end: int, new: str) -> None:
        if start == end and not new:
            return
        old, self._source = self._source, self._source.replace(start, end, new)
        self._is_parsed = False
        if self._parsing is not None:
            self._parsing.edits.append((old, self._source, start, end))
        self.has_new_lines = self.has_new_lines or not _BREAKS.isdisjoint(old.slice(start, end) + new)
        if self._tree is not None:
            # A copy, because snapshots hold the tree before the edit; tree-sitter shares the nodes of both.
            self._tree = edited_tree(self._tree, old, self._source, start, end)

    def _parse(self, seconds: float) -> None:
        """Bring the tree up to date, or leave it edited but unparsed when time runs out."""
        if self._is_parsed:
            return
        self._snapshot = None
        if self._is_unparsed():
            self._tree, self._is_parsed = None, True
            return
        self._take(parse(parser(self.language_id), self._source, self._tree, seconds), is_current=True)

    def _take(self, tree: Tree | None, *, is_current: bool) -> None:
        """Take over the tree of a parse, None if it ran out of time; `is_current`: it belongs to the current text."""
        self._snapshot = None
        self._is_parsed = tree is not None and is_current
        if tree is not None:
            self._tree, self.has_new_lines = tree, self.has_new_lines and not is_current
        elif self._tree is None:
            self._is_plain = self._is_parsed = True
