"""Formats written out in files `*_formats.json` beside this one, each a whole file whose secrets stand between « and ».

A file is a list of objects: `path`, the file's name; `languages`, the LSP language ids that editors give it; `text`,
its content; `about`, a line on what it is. `known_formats.json` was at hand when the rules were written,
`unseen_formats.json` and `third_formats.json` were written without sight of the rules, which were mended by them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from on_secrets.corpus import Planted

HERE = Path(__file__).parent

MIN_SHOWN_CHARS = 4
"""Shortest part of a secret whose appearance counts as a leak."""

_MARKED = re.compile("«([^»]*)»")


@dataclass(frozen=True, slots=True)
class Format:
    """One entry of a list."""

    list: str
    path: str
    languages: tuple[str, ...]
    marked: str
    about: str

    def planted(self, language: str) -> Planted:
        """The file as an editor opens it, with the runs of characters that must not be shown."""
        text = self.marked.replace("«", "").replace("»", "")
        runs = tuple(sorted(self._runs()))
        return Planted(self.list, f"{self.path}: {self.about}", language, text, runs, self.path)

    def _runs(self) -> set[str]:
        """All runs of `MIN_SHOWN_CHARS` of the secrets that stand nowhere else in the file."""
        rest = _MARKED.sub("\n", self.marked) + self.path
        pieces = [line.strip() for value in _MARKED.findall(self.marked) for line in value.splitlines()]
        size = MIN_SHOWN_CHARS
        runs = {piece[at : at + size] for piece in pieces for at in range(len(piece) - size + 1)}
        return {run for run in runs if run not in rest and not run.isspace()}


def of_file(file: Path) -> Iterator[Planted]:
    """The secrets of a JSON list of objects with name, language, path, text and secret: one of the text's."""
    for number, each in enumerate(json.loads(file.read_text("utf-8")), 1):
        name = f"{number} {each['name']} ({each['language']}, {each.get('path', '')})"
        marked = each["text"].replace(each["secret"], f"«{each['secret']}»")
        listed = Format("", each.get("path", ""), (each["language"],), marked, each["name"])
        yield replace(listed.planted(each["language"]), name=name)


def formats(name: str | None = None) -> Iterator[Format]:
    """The formats of one list, or of all lists that lie here."""
    for file in sorted(HERE.glob("*_formats.json")):
        listed = file.name.removesuffix("_formats.json")
        if name in (None, listed):
            for each in json.loads(file.read_text("utf-8")):
                yield Format(listed, each["path"], tuple(each["languages"]), each["text"], each["about"])
