"""Gaps cut out of held-out files, with the context the server would give."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mercury_engine.chunks import split
from mercury_engine.errors import ModelNotFound
from mercury_engine.layout import around
from mercury_engine.requests import FillRequest

SUFFIXES = {".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".cpp", ".lua", ".sh"}

KINDS = ("rest_of_line", "random_span", "whole_line")


@dataclass(frozen=True, slots=True)
class Gap:
    """A fill to ask for, its true text, and all the text before it for a reader that sees nothing else."""

    kind: str
    request: FillRequest
    prefix: str
    truth: str
    path: Path


def gaps(corpus: Path, limit: int, seed: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Gap]:
    """`limit` gaps of every kind from the files below corpus; same seed, same gaps."""
    files = sorted(p for p in corpus.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    if not files:
        raise ModelNotFound(f"no source files below {corpus}; name a folder of code with --corpus")
    for kind in kinds:
        rng = random.Random(f"{seed}/{kind}")
        for _ in range(limit):
            yield _draw(kind, rng, files, corpus)


def _draw(kind: str, rng: random.Random, files: list[Path], corpus: Path) -> Gap:
    while True:
        path = rng.choice(files)
        text = path.read_text("utf-8", "replace").replace("\r\n", "\n")
        start, end = _span(kind, rng, text)
        truth = text[start:end]
        if truth.strip() and len(truth) <= 120 and "\n" not in truth:
            request = _request(text, start, end, f"{path.relative_to(corpus)}")
            return Gap(kind, request, text[:start], truth, path)


def _span(kind: str, rng: random.Random, text: str) -> tuple[int, int]:
    at = rng.randrange(max(1, len(text)))
    line = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    first = line + len(text[line:end]) - len(text[line:end].lstrip())
    if kind == "whole_line":
        return first, end
    if kind == "rest_of_line":
        return max(at, first), end
    return max(at, first), min(end, max(at, first) + rng.randint(2, 30))


def _request(text: str, start: int, end: int, name: str) -> FillRequest:
    before, after = text[:start], text[end:]
    window = before[-4800:]
    if len(window) < len(before):
        window = window[window.find("\n") + 1 :]
    far, near, suffix = around(split(window + after[:2400]), len(window), 2400, 1200)
    comment = "#" if name.endswith((".py", ".sh")) else "//"
    return FillRequest(near=near, far=(f"{comment} path: {name}\n", *far), suffix=tuple(suffix))
