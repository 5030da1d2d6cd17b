"""Keys by their rows of base64."""

from collections.abc import Iterable, Sequence

from mercury_lsp.documents.secret_text.data import shapes
from mercury_lsp.documents.secret_text.values import is_wordy

KEYS = shapes("keys")

MIN_KEY_ROWS = 3
"""Fewest short rows of one length that are taken for a key."""


def key_row(line: str) -> bool:
    """Whether a line is only a row of base64, of any usual length."""
    return KEYS.key_row.match(line) is not None


def is_key(rows: Iterable[str]) -> bool:
    """Whether successive rows of base64 of one length are a key: enough of them, and random."""
    bodies = [found["body"] for row in rows if (found := KEYS.key_row.match(row))]
    joined = "".join(bodies)
    is_mixed = all(any(map(kind, joined)) for kind in (str.isupper, str.islower, str.isdigit))
    return (
        len(bodies) >= MIN_KEY_ROWS and is_mixed and not any(map(is_wordy, bodies)) and not KEYS.repeated.search(joined)
    )


def is_image_row(lines: Sequence[str], number: int) -> bool:
    """Whether a row of base64 belongs to an image or font: it or a neighbour repeats characters as keys never do."""
    near = [line for line in lines[max(0, number - 1) : number + 2] if key_row(line)]
    return any(map(KEYS.repeated.search, near)) and key_row(lines[number])


def key_tail(line: str) -> bool:
    """Whether a line may be the last one of a key in base64."""
    return KEYS.key_tail.match(line) is not None and any(map(str.isalnum, line))
