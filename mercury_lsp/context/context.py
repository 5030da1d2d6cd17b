"""The text around the cursor, in blocks that stay the same between keystrokes, for the KV cache.

Lines that look like secrets are removed, except the cursor's own (see `on_secret`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import FillRequest
from mercury_engine.prompt.layout import PREFIX_CHARS, SUFFIX_CHARS, path_line
from mercury_engine.text.brackets import string_starts

from mercury_lsp.context.scope import CursorClass, classify, headers, is_prose, wants_lines
from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language
from mercury_lsp.documents.redaction import around_cursor, chunk_without_secrets, is_secret_line, without_secrets

MAX_LINE_PREFIX_CHARS = 1600
MAX_LINE_SUFFIX_CHARS = 800
"""Longest parts kept of the cursor's line, before and after the cursor."""

KEPT_WINDOW_SHARES = (0.6, 1.4)
"""A window stays put while its size is within these shares of its budget."""


@dataclass(frozen=True, slots=True)
class CompletionContext:
    """The text around one offset in one version of a document."""

    uri: str
    language_id: str
    offset: int
    """Code points before the cursor."""
    position: tuple[int, int]
    """Line and UTF-16 column."""
    near: str
    far: tuple[str, ...]
    suffix: tuple[str, ...]
    multiline: bool
    """Whether a suggestion may have several lines."""
    prose: bool
    """Whether the cursor is in a comment or a string of several lines."""
    line_prefix: str
    """The cursor's line up to the cursor; only its end if it is very long."""
    line_suffix: str
    """The rest of that line, without terminator; only its start if it is very long."""
    window: tuple[int, int] = (0, 0)
    """Range [first, end) of the document's chunks in these blocks."""
    is_redacted: bool = False
    """Whether the cursor's line is a secret together with other lines or with distant parts of it."""
    snippets: tuple[str, ...] = ()
    """Blocks of other files."""
    lookup_text: tuple[str, ...] = ()
    """Chunks outside the window, for n-gram lookup; the model does not read them."""
    cursor_class: CursorClass = CursorClass.OTHER

    @property
    def on_secret(self) -> bool:
        """Whether the cursor's line looks like a secret; the model must not see it then."""
        return self.is_redacted or is_secret_line(self.line_prefix + self.line_suffix, self.language_id)

    def after(self, text: str) -> "CompletionContext":
        """The context as if `text` was typed at the cursor; the suffix and the position stay as they are."""
        line = (self.line_prefix + text).rpartition("\n")[2]
        return replace(self, near=self.near + text, line_prefix=line[-MAX_LINE_PREFIX_CHARS:])

    def at_line_end(self) -> "CompletionContext":
        """The same after the end of the cursor's line, so that more lines may be suggested."""
        is_within = self.line_suffix.strip() or string_starts(self.line_prefix)[-1] is not None
        return self if self.prose or is_within else replace(self, multiline=True)

    def request(self) -> FillRequest:
        """The engine's request to fill the gap here."""
        return FillRequest(
            near=self.near,
            far=(*self.snippets, *self.far),
            suffix=self.suffix,
            lookup_text=self.lookup_text,
            multiline=self.multiline,
            prose=self.prose,
        )


@dataclass(frozen=True, slots=True)
class _CellChunk:
    """A chunk of another cell of the same notebook."""

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


class ContextBuilder:
    """Builds the contexts of one open document; remembers its window, which moves rarely."""

    def __init__(self, prefix_chars: int = PREFIX_CHARS, suffix_chars: int = SUFFIX_CHARS):
        self._prefix_chars = prefix_chars
        self._suffix_chars = suffix_chars
        self._first: str | None = None
        self._last: str | None = None
        self._headers: tuple[tuple[str | None, str | None], str] = ((None, None), "")
        self._are_headers_parsed = False

    def build(
        self,
        snapshot: Snapshot,
        offset: int,
        path: str | None,
        cells_above: Sequence[Snapshot] = (),
        cells_below: Sequence[Snapshot] = (),
    ) -> CompletionContext:
        """The context at offset; the model sees `path`, relative to the workspace, in a comment."""
        source = snapshot.source
        offset = min(max(0, offset), source.length)
        index = source.chunk_at(offset)
        above, below = _chunks_above(cells_above), _chunks_below(snapshot, cells_below)
        (start, end), above, below = self._window(snapshot.chunks, index, above, below)
        preface = self._preface(snapshot, offset, index, start, path)
        line_start, line_end = source.line_bounds(offset)
        at = offset - source.starts[index]
        before, after, is_secret = around_cursor(snapshot.chunks, index, at, snapshot.language_id)
        line_prefix = source.slice(max(line_start, offset - MAX_LINE_PREFIX_CHARS), offset)
        cursor_class = classify(snapshot, offset)
        return CompletionContext(
            uri=snapshot.uri,
            language_id=snapshot.language_id,
            offset=offset,
            position=source.position_at(offset),
            near=with_line_feeds(before),
            far=(*filter(None, preface), *map(_CellChunk.block, above), *_blocks(snapshot, range(start, index))),
            suffix=(
                *filter(None, (with_line_feeds(after), *_blocks(snapshot, range(index + 1, end)))),
                *map(_CellChunk.block, below),
            ),
            multiline=wants_lines(snapshot, offset, cursor_class),
            prose=is_prose(snapshot, offset, cursor_class),
            line_prefix=line_prefix,
            line_suffix=source.slice(offset, min(line_end, offset + MAX_LINE_SUFFIX_CHARS)),
            window=(start, end),
            is_redacted=is_secret,
            cursor_class=cursor_class,
        )

    def _preface(self, snapshot: Snapshot, offset: int, index: int, start: int, path: str | None) -> list[str]:
        """The blocks before the window: the file's path, and the headers that the window cuts off."""
        blocks = [language(snapshot.language_id).marks.line(path_line(path))] if path else []
        if start and (text := self._headers_at(snapshot, offset, index, start)):
            blocks.append(text)
        return [with_line_feeds(without_secrets(block, snapshot.language_id)) for block in blocks]

    def _headers_at(self, snapshot: Snapshot, offset: int, index: int, start: int) -> str:
        """The headers; they stay while the cursor stays in its chunk, or a key would prefill them and all text after.

        Headers from an outdated tree are replaced once the text is parsed.
        """
        chunks = snapshot.chunks
        anchors = (chunks[start] if start < index else None, chunks[index - 1])
        is_unmoved = all(ours is theirs for ours, theirs in zip(anchors, self._headers[0], strict=True))
        if not is_unmoved or (snapshot.is_parsed and not self._are_headers_parsed):
            self._headers = (anchors, headers(snapshot, offset, snapshot.source.starts[start]))
            self._are_headers_parsed = snapshot.is_parsed
        return self._headers[1]

    def _window(
        self, chunks: tuple[str, ...], index: int, above: list[_CellChunk], below: list[_CellChunk]
    ) -> tuple[tuple[int, int], list[_CellChunk], list[_CellChunk]]:
        """The window around chunk `index`, as a range of the document's chunks, and what of other cells is in it."""
        count, total = len(above), len(above) + len(chunks)
        joined = (*(each.text for each in above), *chunks, *(each.text for each in below)) if above or below else chunks
        cursor = count + index
        before = _reach(joined, range(cursor - 1, -1, -1), self._prefix_chars, self._first)
        after = _reach(joined, range(cursor + 1, len(joined)), self._suffix_chars, self._last)
        start, end = cursor - before, cursor + 1 + after
        self._first = joined[start] if before else None
        self._last = joined[end - 1] if after else None
        return (max(0, start - count), min(end, total) - count), above[start:], below[: max(0, end - total)]


def _chunks_above(cells: Sequence[Snapshot]) -> list[_CellChunk]:
    """The chunks of the cells above one."""
    return [
        _CellChunk(cell, number, after=_gap(cell) if number == len(cell.chunks) - 1 else "")
        for cell in cells
        for number in range(len(cell.chunks))
    ]


def _chunks_below(own: Snapshot, cells: Sequence[Snapshot]) -> list[_CellChunk]:
    """The chunks of the cells below `own`."""
    return [
        _CellChunk(cell, number, before="" if number else _gap(previous))
        for previous, cell in zip((own, *cells), cells, strict=False)
        for number in range(len(cell.chunks))
    ]


def _gap(cell: Snapshot) -> str:
    """The end of a cell's last line, if it has none, and a blank line."""
    return "\n" if cell.slice(cell.length - 1, cell.length) in ("\n", "\r") else "\n\n"


def without_start(blocks: Sequence[str], count: int) -> tuple[str, ...]:
    """Blocks of text without their first `count` characters."""
    kept = []
    for block in blocks:
        kept.append(block[count:])
        count = max(0, count - len(block))
    return tuple(filter(None, kept))


def _blocks(snapshot: Snapshot, numbers: range) -> Iterator[str]:
    """Chunks without secrets."""
    chunks, language_id = snapshot.chunks, snapshot.language_id
    texts = (chunk_without_secrets(chunks, number, language_id) for number in numbers)
    return filter(None, map(with_line_feeds, texts))


def _reach(chunks: tuple[str, ...], order: range, budget: int, kept: str | None) -> int:
    """The number of chunks in the window, taken in `order` from the cursor outward.

    The window ends at the kept chunk while its size is within `KEPT_WINDOW_SHARES`, else it is as large as the budget
    allows. A window that ends with the document may be smaller.
    """
    size, fitting = 0, 0
    for count, index in enumerate(order, 1):
        size += len(chunks[index])
        if size > KEPT_WINDOW_SHARES[1] * budget:
            break
        if size <= budget:
            fitting = count
        if chunks[index] is kept and (count == len(order) or size >= KEPT_WINDOW_SHARES[0] * budget):
            return count
    return fitting
