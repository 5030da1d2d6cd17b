"""The prompt of Sweep's next-edit models (Qwen2.5-Coder, Apache-2.0), as the cards of 0.5B and 1.5B have it.

The lines around a region before the last edit, as they are now, and as they should be are three files one after
another, of which the model writes the last. Earlier edits are files named PATH.diff. Other files could stand in front;
they are left out.

The two markers are tokens of the vocabulary and only made here: text that spells them stays text (`Tokenizer.encode`),
but what spells one is not shown, and an answer that does is none.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import json_files

SWEEP = "sweep"
"""The name of the format."""

FORMAT_FILE = "edit_format.json"
"""A file in a model's folder, `{"family": "sweep"}`, which goes before the model's name."""

FILE = "<|file_sep|>"
MARKERS = frozenset((FILE, "<|endoftext|>"))

LINES_ABOVE, LINES_BELOW = 8, 3
"""Lines that are rewritten with the region, because the format shows nothing else of the document."""

MAX_EDITS = 3

EDIT_CHARS = 1200
"""Most characters of one recent edit; longer ones are left out."""

_NAME = re.compile(r"sweep.*next.?edit|next.?edit.*sweep")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt: text, or the marker that begins a file."""

    text: str
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt, and the lines that the model writes again: the region with some lines around it."""

    pieces: tuple[Piece, ...]
    present: str
    above: str
    """The lines of `present` before the region."""
    below: str


def format_of(folder: Path, names: Iterable[str]) -> str | None:
    """`SWEEP` for a model whose folder or name says so; else None. Raises ModelCorrupt for a file that is not valid."""
    path = folder / FORMAT_FILE
    if path.is_file():
        if json_files.read(path, "correct it or delete it") != {"family": SWEEP}:
            raise ModelCorrupt(f'{path} is not {{"family": "{SWEEP}"}}; correct it or delete it')
        return SWEEP
    return SWEEP if any(_NAME.search(name.lower()) for name in names) else None


def render(request: RewriteRequest) -> Rendered | None:
    """The prompt; None if the region, its lines around or the path spell a marker."""
    above, below = _lines_around(request)
    present = above + request.text + below
    if _spells(present + request.path):
        return None
    edits = [each for each in request.history if not _spells(each.removed + each.inserted)]
    original, is_undone = _before_last(present, edits)
    earlier = edits[:-1] if is_undone else edits
    files = [_edit(each, request.path) for each in earlier[-MAX_EDITS:] if _size(each) <= EDIT_CHARS]
    files += [
        f"original/{request.path}\n{_ended(original)}",
        f"current/{request.path}\n{_ended(present)}",
        f"updated/{request.path}\n",
    ]
    pieces = chain.from_iterable((Piece(FILE, is_token=True), Piece(each)) for each in files)
    return Rendered(tuple(pieces), present, above, below)


def answer(rendered: Rendered, written: str) -> str | None:
    """The region's new text; None if the answer makes no sense."""
    above, below = rendered.above, rendered.below
    text = _ended(written) if rendered.present.endswith("\n") else written
    is_whole = len(text) >= len(above) + len(below) and text.startswith(above) and text.endswith(below)
    return text[len(above) : len(text) - len(below)] if is_whole and not _spells(text) else None


def _edit(hunk: EditHunk, path: str) -> str:
    original, updated = (side.strip("\n") for side in (hunk.removed, hunk.inserted))
    return f"{hunk.path or path}.diff\noriginal:\n{original}\nupdated:\n{updated}\n"


def _size(hunk: EditHunk) -> int:
    return len(hunk.removed) + len(hunk.inserted)


def _lines_around(request: RewriteRequest) -> tuple[str, str]:
    above = request.near.splitlines(keepends=True)[-LINES_ABOVE:]
    below = "".join("".join(request.suffix).splitlines(keepends=True)[:LINES_BELOW])
    return "".join(above), below if below.endswith("\n") else below[: below.rfind("\n") + 1]


def _before_last(text: str, history: Sequence[EditHunk]) -> tuple[str, bool]:
    """The lines as they were before the last edit, and whether it was made in them."""
    last = history[-1] if history else None
    if last is None or last.path is not None or not last.inserted or last.inserted not in text:
        return text, False
    return text.replace(last.inserted, last.removed, 1), True


def _spells(text: str) -> bool:
    return any(marker in text for marker in MARKERS)


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"
