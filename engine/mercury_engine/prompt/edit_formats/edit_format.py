"""A prompt format in which a model was trained to rewrite a region: templates and markers, as data."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import json_files

TEMPLATE_FILE = "edit_format.json"
"""A file in a model's folder with the fields of `EditFormat`, or with the family of a known one."""

EditStyle = Literal["blocks", "diff"]


@dataclass(frozen=True, slots=True)
class EditFormat:
    """One format. Templates have fields in braces; everything else in them, braces too, is as it stands."""

    family: str
    names: str
    """Regular expression, searched in the model's name, in lower case."""
    prompt: str
    """Fields: edits, path, file (the lines shown as they were before all edits), original (the region before the last
    ones), before, region, after; first and last number the region's lines, see `first_line`."""
    edit: str
    """One recent edit. Fields: path, original, updated, or diff where the style says so; first and last: its lines."""
    style: EditStyle
    max_edits: int
    tokens: tuple[str, ...] = ()
    """Markers that are tokens of the model's vocabulary; text that spells them never becomes them."""
    marks: tuple[str, ...] = ()
    """Markers that are text, so that they cannot be told from a document's text that spells them."""
    cursor: str = ""
    """Stands at the cursor in the region; empty if the format does not show it."""
    end: str = ""
    """Text after the region in an answer; empty where a token ends it."""
    nothing: tuple[str, ...] = ()
    """Beginnings of answers that mean that nothing should change."""
    dropped: tuple[str, ...] = ()
    """Texts that are taken out of an answer."""
    lines_above: int = 0
    """Lines that are rewritten with the region, for formats that show nothing else of the document."""
    lines_below: int = 0
    undone: int = 1
    """Most recent edits of the document that are taken back in `original`, the newest first."""
    shows_undone: bool = True
    """Whether they are among the recent edits, too."""
    edit_context: int = 0
    """Lines around a recent edit of the document that are shown with it."""

    @property
    def sentinels(self) -> tuple[str, ...]:
        """All texts that no rewritten region may hold."""
        return tuple(filter(None, (*self.tokens, *self.marks, self.cursor, self.end)))


def read_format(folder: Path, known: Sequence[EditFormat]) -> EditFormat | None:
    """The format that a model's folder brings along, or the known one whose family it names; None without a file.

    Raises ModelCorrupt.
    """
    path = folder / TEMPLATE_FILE
    if not path.is_file():
        return None
    try:
        record = json_files.read(path, "correct it or delete it")
        return _of_family(record["family"], known) if record.keys() == {"family"} else _parsed(record)
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelCorrupt(f"{path} is not valid ({error}); correct it or delete it") from error


def _of_family(family: Any, known: Sequence[EditFormat]) -> EditFormat:
    """Raises ValueError."""
    for each in known:
        if each.family == family:
            return each
    raise ValueError(f"family is {family!r}; known are {', '.join(each.family for each in known)}")


def _parsed(record: dict[str, Any]) -> EditFormat:
    """Raises ValueError and TypeError."""
    kinds = {field.name: field.type for field in fields(EditFormat)}
    values = {"names": "", **record}
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = value = tuple(value)
        if name not in kinds:
            raise ValueError(f"{name!r} is no field; known are {', '.join(kinds)}")
        parts = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(part, int if kinds[name] in (int, bool) else str) for part in parts):
            raise ValueError(f"{name} is {value!r}")
    if values.get("style") not in get_args(EditStyle):
        raise ValueError(f"style is {values.get('style')!r}; known are {', '.join(get_args(EditStyle))}")
    return EditFormat(**values)
