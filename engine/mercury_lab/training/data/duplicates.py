"""Find duplicates among texts."""

import hashlib


def digest(text: str) -> bytes:
    """The SHA-256 of a text after every run of white space is replaced by one space."""
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


class Duplicates:
    """Remembers texts."""

    def __init__(self) -> None:
        self._seen = set[bytes]()

    def add(self, text: str) -> str | None:
        """Remember the text; returns "duplicate" if it was known, else None."""
        key = digest(text)
        is_known = key in self._seen
        self._seen.add(key)
        return "duplicate" if is_known else None
