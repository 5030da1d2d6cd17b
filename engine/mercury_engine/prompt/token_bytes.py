"""The bytes of tokens: several tokens may share the bytes of one character, so a token alone may be no text."""

from collections.abc import Iterator


def token_bytes(name: str, text: str) -> bytes:
    """A token's bytes from its name in a byte-level vocabulary; from its text for a name of another kind."""
    try:
        return bytes(_BYTES[character] for character in name)
    except KeyError:
        return text.encode()


def _byte_names() -> Iterator[tuple[str, int]]:
    """The character that stands for each byte in byte-level BPE: printable ones for themselves, others beyond 255."""
    others = 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            yield chr(byte), byte
        else:
            yield chr(others), byte
            others += 1


_BYTES = dict(_byte_names())
