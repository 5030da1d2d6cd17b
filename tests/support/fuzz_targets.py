"""What must hold for any bytes at all; hypothesis tries some in the ordinary tests, atheris millions.

`python -m tests.support.fuzz_targets NAME -runs=100000` runs one target by the coverage that it reaches.
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext

if __name__ == "__main__":
    import atheris

    instrumented = atheris.instrument_imports(include=["mercury_lsp.documents", "mercury_lsp.transport"])
else:
    instrumented = nullcontext()

with instrumented:
    from mercury_lsp.documents.chunked_text import ChunkedText
    from mercury_lsp.documents.redaction import redacted_lines, without_secrets
    from mercury_lsp.documents.roots import path_of
    from mercury_lsp.transport import framing
    from mercury_lsp.transport.framing import MessageDecoder, Unreadable

FIRST, LAST = {"id": 1, "text": "Content-Length: 7\r\n\r\n{}"}, {"id": 2, "text": "😀"}

KEY = 'token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"\n'


def framed_messages(data: bytes) -> None:
    """Whatever comes first, the second of two messages is read, in pieces of any size."""
    size, data = data[0] + 1 if data else 1, data[1:]
    sent = data + b"\r\n\r\n" + framing.framed(FIRST) + framing.framed(LAST)
    decoder = MessageDecoder()
    read = [each for at in range(0, len(sent), size) for each in decoder.feed(sent[at : at + size])]
    assert [each for each in read if not isinstance(each, Unreadable)][-1:] == [LAST]


def positions(data: bytes) -> None:
    """Edits at any position leave a text as a plain string would be, and no URI fails."""
    numbers, text = list(data[:12]), data[12:].decode("utf-8", "replace").replace("~", "\r\n").replace("^", "\r")
    path_of(text)
    source, plain = ChunkedText.of(text), text
    while len(numbers) >= 4:
        ends = sorted(source.offset_at(numbers.pop(), numbers.pop() * 7) for _ in range(2))
        new = text[: numbers[-1] % 9] if numbers else ""
        assert 0 <= ends[0] <= ends[1] <= len(plain)
        if ends[0] != ends[1] or new:
            source = source.replace(ends[0], ends[1], new)
        plain = plain[: ends[0]] + new + plain[ends[1] :]
        assert "".join(source.chunks) == plain
        line, column = source.position_at(ends[0])
        assert source.offset_at(line, column) in (ends[0], ends[0] - 1)  # within \r\n is before it


def secrets(data: bytes) -> None:
    """Lines are kept or redacted whole, and a key is redacted whatever stands around it."""
    text = data.decode("utf-8", "replace")
    redacted = redacted_lines(text, "python")
    kept = without_secrets(text, "python")
    assert len(kept) + sum(map(len, redacted)) == len(text)
    assert KEY not in without_secrets(f"{text}\n{KEY}{text}", "python")


TARGETS: dict[str, Callable[[bytes], None]] = {each.__name__: each for each in (framed_messages, positions, secrets)}

if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
