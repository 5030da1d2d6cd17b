"""The shape of a change, by its tokens: what a reader would call it."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from mercury_lab.commit_edits.changes import WORD, ChangedText
from mercury_lsp.documents.languages import language

Shape = Literal[
    "sibling", "rename", "parameter", "type", "field", "import", "delete", "insertion", "completion", "other file"
]
"""`sibling`: the same replacement in a line like the examples'; `insertion`: lines like two inserted before;
`completion`: a line that the user has begun; `other file`: any of the others, when the examples' file is finished."""

SHAPES: tuple[Shape, ...] = get_args(Shape)

MARKUP = frozenset(("yaml", "toml", "html", "css"))
"""Languages without names to rename; together they count as one."""

Silence = Literal["literal", "revert", "exhausted", "unrelated"]
"""`literal`: what the change replaced is left in comments or strings alone; `revert`: the user took both examples
back; `exhausted`: nothing is left of it; `unrelated`: two finished commits that have nothing in common."""

SILENCES: tuple[Silence, ...] = get_args(Silence)

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_KEYWORDS, _TYPES = (frozenset(_WORDS[kind].split()) for kind in ("keywords", "types"))

_TYPE_NAME = re.compile(r"(?!(?:True|False|None)$)[A-Z]\w*[a-z]\w*|\w+_t")

_FIELD = re.compile(
    r"\s*(?:(?:pub|public|private|readonly|static|final|let|self\.|this\.)\s*)*[\"']?[\w.-]+[\"']?\??\s*[:=]"
)


def shape_of(changed: ChangedText, language_id: str, lines: Sequence[str]) -> Shape:
    """The shape of a change; `lines`: its new lines, or the old ones of a deletion."""
    starts = language(language_id).import_words
    if starts and all(line.lstrip().startswith(starts) for line in lines if line.strip()):
        return "import"
    if changed.is_deletion:
        return "delete"
    if changed.is_insertion:
        return "field" if len(lines) == 1 and _FIELD.match(lines[0]) else "insertion"
    if _is_type(changed):
        return "type"
    if language_id not in MARKUP and _is_rename(changed):
        return "rename"
    if "," in (*changed.inserted, *changed.removed) and "(" in changed.new:
        return "parameter"
    return "sibling"


def _is_type(changed: ChangedText) -> bool:
    """Whether only types change: an annotation comes or goes, or names of types become others where types stand."""
    words = [word for word in (*changed.inserted, *changed.removed) if WORD.fullmatch(word)]
    marks = [gone[:1] + come[:1] for gone, come in changed.replaced]
    if words and all(mark[:1] == (":",) for mark in marks):
        return True
    if not all(any(map(WORD.fullmatch, side)) for side in (changed.inserted, changed.removed)):
        return False
    if not all(word.lower() in _TYPES or _TYPE_NAME.fullmatch(word) for word in words):
        return False
    known = any(word.lower() in _TYPES or word.endswith("_t") for word in words)
    return known or any(_stands_as_type(changed.old, gone[0]) for gone, _ in changed.replaced if gone)


def _stands_as_type(tokens: Sequence[str], word: str) -> bool:
    """Whether a word is behind a mark of types or before a name."""
    at = tokens.index(word)
    before, behind = tokens[at - 1] if at else "", tokens[at + 1] if at + 1 < len(tokens) else ""
    is_name = bool(WORD.fullmatch(behind)) and behind.lower() not in _KEYWORDS
    return before in (":", "<", "|", ">") or is_name


def _is_rename(changed: ChangedText) -> bool:
    """Whether one word becomes another, everywhere the same."""
    pairs = {(gone, come) for gone, come in changed.replaced}
    if len(pairs) != 1:
        return False
    gone, come = next(iter(pairs))
    is_pair = len(gone) == len(come) == 1 and WORD.fullmatch(gone[0]) and WORD.fullmatch(come[0])
    return bool(is_pair) and gone[0].lower() not in _KEYWORDS and come[0].lower() not in _KEYWORDS
