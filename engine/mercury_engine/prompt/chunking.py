"""Content-defined chunks of source text, the unit in which far context is read and cached.

A chunk starts with a line. Whether a line starts one depends only on the lines around it, so an edit moves only the
boundaries next to it; all other chunks keep their text and cache.
"""

from zlib import crc32

from mercury_engine.text.lines import indent_of, lines_of

BOUNDARY_RADIUS = 6
"""Lines on either side that a boundary must outrank; the mean chunk has about 2 * BOUNDARY_RADIUS + 1 lines."""

MAX_CHUNK_CHARS = 512
"""Longest chunk, about 150 tokens of code; longer ones are cut between lines, or inside a line longer than this."""


def split(text: str) -> list[str]:
    """Cut text into chunks that together are the text. The empty text has no chunks."""
    lines = lines_of(text)
    ranks = [_rank(line) for line in lines]
    chunks: list[str] = []
    current = ""
    for number, line in enumerate(lines):
        if current and (_is_boundary(ranks, number) or len(current) + len(line) > MAX_CHUNK_CHARS):
            chunks.append(current)
            current = ""
        current += line
        if len(current) > MAX_CHUNK_CHARS:
            *whole, current = (current[at : at + MAX_CHUNK_CHARS] for at in range(0, len(current), MAX_CHUNK_CHARS))
            chunks += whole
    return [*chunks, current] if current else chunks


def _rank(line: str) -> tuple[int, int]:
    """The lower rank starts a chunk: less indentation (definitions), then an arbitrary fixed order."""
    bare = line.strip()
    indent = indent_of(line) if bare else 1 << 16
    return (indent // 2 if len(bare) > 1 else 1 << 16), crc32(line.encode("utf-8", "surrogatepass"))


def _is_boundary(ranks: list[tuple[int, int]], number: int) -> bool:
    """Whether the line outranks its neighbours; the first of equals wins, so ties do not merge chunks."""
    mine = ranks[number]
    before = ranks[max(0, number - BOUNDARY_RADIUS) : number]
    after = ranks[number + 1 : number + 1 + BOUNDARY_RADIUS]
    return all(mine < other for other in before) and all(mine <= other for other in after)
