"""Times the server's history while a user types in a long document, and its ranking of places by key."""

import random
import re
from collections.abc import Iterable
from time import process_time

from lsprotocol import types

from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.places import ranked_places
from mercury_lsp.context.open_documents import OpenDocuments

LINES = 20_000
EDITS = 60
KEYS = "_again"
"""Typed behind a name; then a ranking is asked for."""

URI = "file:///long.py"

_NAME = re.compile(r"\b[a-z]\w{3,}\b")


def ranking_ms(texts: Iterable[str], seed: int) -> dict[str, float]:
    """Processor time in milliseconds of hunks and places when they are asked for, and of recording a key."""
    desk = _Desk(texts)
    rng = random.Random(f"ranking {seed}")
    asked, recorded = list[float](), list[float]()
    for _ in range(EDITS):
        line = rng.randrange(LINES)
        for number, key in enumerate(KEYS):
            recorded.append(desk.type(line, number, key))
        started = process_time()
        ranked_places([(desk.documents.snapshot(URI), "long.py")], desk.history.hunks())
        asked.append(1000 * (process_time() - started))
    asked.sort()
    recorded.sort()
    return {
        "lines": LINES,
        "p50": round(asked[len(asked) // 2], 2),
        "p95": round(asked[int(len(asked) * 0.95)], 2),
        "key_p95": round(recorded[int(len(recorded) * 0.95)], 3),
    }


class _Desk:
    def __init__(self, texts: Iterable[str]) -> None:
        lines: list[str] = []
        for text in texts:
            lines += text.splitlines(keepends=True)
            if len(lines) >= LINES:
                break
        self.documents = OpenDocuments()
        self.documents.open(types.TextDocumentItem(URI, "python", 1, "".join(lines[:LINES])))
        self.history = History(self.documents)

    def type(self, line: int, number: int, key: str) -> float:
        """Type a key behind the first name of a line; returns the milliseconds that the history took."""
        snapshot = self.documents.snapshot(URI)
        start = snapshot.offset_at(line, 0)
        text, _ = snapshot.line_at(start)
        name = _NAME.search(text)
        at = types.Position(line, name.end() if name else number)
        change = types.TextDocumentContentChangePartial(types.Range(at, at), key)
        edits = self.documents.change(URI, 1, [change]) or []
        started = process_time()
        self.history.record(URI, edits)
        return 1000 * (process_time() - started)
