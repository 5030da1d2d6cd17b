"""What a model without the server would rewrite: one region, in the project's layout or in Sweep's format.

The region is where the next edit is (`placed`), or where a simple rule looks: at the next line with a word that the
last edit took away, else at the cursor. In quiet positions both look there. A rewrite counts as shown if it changes
anything.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.loading import load_model
from mercury_engine.prompt.sweep_format import SWEEP
from mercury_engine.text.lines import lines_of

from mercury_lab.editing.edit_desk import Answer
from mercury_lab.editing.line_edits import LineEdit
from mercury_lab.editing.scenarios import Scenario
from mercury_lab.engine import Engine
from mercury_lab.training.window import window
from mercury_lsp.documents.languages import language_of

PEER_WAYS = ("plain", "plain, placed", "sweep", "sweep, placed")
"""Format, and whether the model is given the place."""

LINES_AROUND = 3
"""Lines of the region on either side of the place."""

HUNKS = 8
"""Most edits of the history that the model sees."""

_WORD = re.compile(r"\w+")


class Peer:
    """One model, loaded for one way of asking."""

    def __init__(self, model: str, way: str, threads: int | None):
        parts = load_model(_path(model), "cpu", threads, None, "auto")
        self._engine = Engine(replace(parts, edit_format=SWEEP if way.startswith("sweep") else None))
        self._is_placed = way.endswith("placed")

    @property
    def name(self) -> str:
        return self._engine.name

    def ask(self, scenario: Scenario) -> Answer:
        """The model's rewrite of the region."""
        now = scenario.now
        place = scenario.wants[0] if self._is_placed and scenario.wants else guessed(scenario, now)
        region = around(place, now)
        started = perf_counter()
        found = self._engine.rewrite(request(scenario, now, region))
        milliseconds = 1000 * (perf_counter() - started)
        is_shown = found.is_finished and found.text != region.text
        return Answer(replace(region, text=found.text) if is_shown else None, milliseconds)


def _path(model: str) -> str | Path:
    return Path(model) if Path(model).exists() else model


def guessed(scenario: Scenario, now: Mapping[str, str]) -> LineEdit:
    """The line of the cursor's file, nearest after the cursor and then from the top, with a word that the last edit
    took away; else the cursor's line. Its text stays.
    """
    path, offset = scenario.cursor
    lines, cursor = lines_of(now[path]), now[path].count("\n", 0, offset)
    gone = removed_words(scenario)
    order = [*range(cursor + 1, len(lines)), *range(cursor)]
    found = next((n for n in order if gone & set(_WORD.findall(lines[n]))), cursor)
    return LineEdit(path, found, min(found + 1, len(lines)), lines[found] if found < len(lines) else "")


def removed_words(scenario: Scenario) -> set[str]:
    """Words that the last edit took away."""
    if not scenario.edits:
        return set()
    files = dict(scenario.files)
    for edit in scenario.edits[:-1]:
        files = edit.apply(files)
    last = scenario.edits[-1]
    return set(_WORD.findall(last.removed(files))) - set(_WORD.findall(last.text))


def around(place: LineEdit, now: Mapping[str, str]) -> LineEdit:
    """The region: the lines of a place and some around them, with their present text."""
    lines = lines_of(now[place.path])
    start, end = max(0, place.start - LINES_AROUND), min(len(lines), place.end + LINES_AROUND)
    return LineEdit(place.path, start, end, "".join(lines[start:end]))


def request(scenario: Scenario, now: Mapping[str, str], region: LineEdit) -> RewriteRequest:
    """The request for a region."""
    text, path = now[region.path], region.path
    lines = lines_of(text)
    start, end = (sum(map(len, lines[:number])) for number in (region.start, region.end))
    far, near, suffix = window(text, start, end)
    history = tuple(hunks(scenario, path))[-HUNKS:]
    return RewriteRequest(region.text, near, tuple(far), tuple(suffix), history, path, language_of(path))


def hunks(scenario: Scenario, path: str) -> Sequence[EditHunk]:
    """The history as the reader sees it from one document."""
    files, found = dict(scenario.files), []
    for edit in scenario.edits:
        start = sum(map(len, lines_of(files[edit.path])[: edit.start]))
        found.append(EditHunk(start, edit.removed(files), edit.text, None if edit.path == path else edit.path))
        files = edit.apply(files)
    return found
