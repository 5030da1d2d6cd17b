"""Cut gaps out of held-out files, with the context that the server would send."""

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mercury_engine.api import FillRequest
from mercury_engine.errors import ModelNotFound, RequestError
from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import path_block

from mercury_lab.training.data.filters import DATA_LANGUAGES, language_of
from mercury_lab.training.window import window

GAP_KINDS = ("rest_of_line", "whole_line", "lines", "random_span")

MAX_GAP_CHARS = {"lines": 200}
"""Longest gap of a kind, in characters; 120 for the other kinds."""

MAX_PLACE_ATTEMPTS = 2000
"""Random places tried for one gap before the corpus counts as too small."""


@dataclass(frozen=True, slots=True)
class HeldOutFile:
    """One held-out file; `name` is its path relative to the corpus folder."""

    path: Path
    name: str
    language: str
    text: str

    @property
    def repository(self) -> str:
        """The first folder of the name; empty for a file at the top."""
        return self.name.partition("/")[0] if "/" in self.name else ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A fill request, its true text, and the whole text before it for readers that see nothing else."""

    kind: str
    request: FillRequest
    prefix: str
    truth: str
    path: Path
    language: str


def held_out_files(corpus: Path, but: Collection[str] = ()) -> list[HeldOutFile]:
    """The source files below a folder, by name, except those whose text is in `but`.

    Raises ModelNotFound for none.
    """
    found = []
    for path in sorted(path for path in corpus.rglob("*") if path.is_file()):
        name, text = path.relative_to(corpus).as_posix(), path.read_text("utf-8", "replace").replace("\r\n", "\n")
        language = language_of(name, b"")
        if language is not None and language not in DATA_LANGUAGES and text not in but:
            found.append(HeldOutFile(path, name, language, text))
    if not found:
        raise ModelNotFound(f"no source files below {corpus}; `make corpus` gets the usual ones, --corpus names others")
    return found


def gaps(corpus: Path, limit: int, seed: int, kinds: tuple[str, ...] = GAP_KINDS) -> Iterator[Gap]:
    """`limit` gaps of every kind from the files below `corpus`; the same seed gives the same gaps."""
    found = held_out_files(corpus)
    for kind in kinds:
        yield from sample_gaps(found, limit, seed, kind)


def sample_gaps(found: Sequence[HeldOutFile], limit: int, seed: int, kind: str) -> Iterator[Gap]:
    """`limit` gaps of one kind."""
    for document, start, end in sample_places(found, limit, seed, kind):
        gap = gap_at(document, start, end, kind)
        if kind == "lines":
            gap = replace(gap, request=replace(gap.request, multiline=True, max_slots=64))
        yield replace(gap, request=replace(gap.request, effort="high"))


def sample_places(
    found: Sequence[HeldOutFile], limit: int, seed: int, kind: str
) -> Iterator[tuple[HeldOutFile, int, int]]:
    """`limit` spans (file, start, end) of one kind; every repository is equally likely."""
    rng = random.Random(f"{seed}/{kind}")
    by_repository: defaultdict[str, list[HeldOutFile]] = defaultdict(list)
    for document in found:
        by_repository[document.repository].append(document)
    groups = list(by_repository.values())
    for _ in range(limit):
        for _ in range(MAX_PLACE_ATTEMPTS):
            document = rng.choice(rng.choice(groups))
            start, end = _span(kind, rng, document.text)
            if _fits(kind, document.text[start:end]):
                yield document, start, end
                break
        else:
            raise RequestError(f"the corpus has no place for a gap of kind {kind}; name a larger one with --corpus")


def gap_at(document: HeldOutFile, start: int, end: int, kind: str) -> Gap:
    """The gap text[start:end] of a document, as the server would request it."""
    far, near, suffix = window(document.text, start, end)
    before, after = (
        document.text[: start - len(near) - sum(map(len, far))],
        document.text[end + sum(map(len, suffix)) :],
    )
    rest = [*split(after), "", *split(before)]
    far.insert(0, path_block(document.name, document.language))
    request = FillRequest(near=near, far=tuple(far), suffix=tuple(suffix), lookup_text=tuple(rest))
    text = document.text
    return Gap(kind, request, text[:start], text[start:end], document.path, document.language)


def _span(kind: str, rng: random.Random, text: str) -> tuple[int, int]:
    at = rng.randrange(max(1, len(text)))
    if kind == "line":  # short lines as likely as long ones
        at = rng.choice([0, *(i + 1 for i, c in enumerate(text) if c == "\n")])
    line = text.rfind("\n", 0, at) + 1
    end = _line_end(text, at)
    first = line + len(text[line:end]) - len(text[line:end].lstrip())
    if kind in ("line", "whole_line"):
        return first, end
    if kind == "rest_of_line":
        return max(at, first), end
    if kind == "random_span":
        return max(at, first), min(end, max(at, first) + rng.randint(2, 30))
    for _ in range(rng.randint(1, 4)):
        end = _line_end(text, min(len(text), end + 1))
    return first, end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _fits(kind: str, truth: str) -> bool:
    if not truth.strip() or len(truth) > MAX_GAP_CHARS.get(kind, 120):
        return False
    return ("\n" in truth) == (kind == "lines") and bool(truth.rpartition("\n")[2].strip())
