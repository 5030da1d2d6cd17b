"""Make examples of real edits: the hunks between two versions of a file, one after the other."""

import random
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

from mercury_engine.api import EditHunk
from mercury_engine.text.lines import lines_of

from mercury_lab.training.edits.plan import Site
from mercury_lab.training.edits.stage import QUIET_SHARE, EditExample, Stage, changed_words, choose_example

MAX_HUNKS = 60
"""Hunks; files with more of them were rewritten."""

MERGE_DISTANCE_LINES = 1
"""Equal lines between two hunks at which they are merged, or fewer."""


def from_versions(
    path: str,
    language: str,
    old: str,
    new: str,
    rng: random.Random,
    fits: Callable[[EditExample], bool] = lambda example: True,
) -> Iterator[EditExample]:
    """Examples hunk by hunk: the hunks above are the edit history, the next one is the edit.

    Only hunks that share a changed word with a hunk above become examples, because the history cannot predict the
    others; QUIET_SHARE of the examples have a region that does not change.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    steps = tuple(hunks(old, new))
    if len(steps) > MAX_HUNKS:
        return
    known: set[str] = set()
    for done, step in enumerate(steps):
        words = {word for word in changed_words([_change(old, step)]) if len(word) > 2}
        if done and words & known:
            stage = Stage(path, language, "version", old, steps, done)
            if example := choose_example(stage, rng.random() < QUIET_SHARE, fits, rng):
                yield example
        known |= words


def hunks(old: str, new: str) -> list[Site]:
    """The changed lines of the old text and their new text, from top to bottom."""
    ours, theirs = lines_of(old), lines_of(new)
    starts = [0]
    for line in ours:
        starts.append(starts[-1] + len(line))
    groups: list[list[int]] = []
    for tag, first, last, start, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if groups and first - groups[-1][1] <= MERGE_DISTANCE_LINES:
            groups[-1][1], groups[-1][3] = last, end
        else:
            groups.append([first, last, start, end])
    return [Site(starts[a], starts[b], "".join(theirs[c:d])) for a, b, c, d in groups]


def _change(old: str, step: Site) -> EditHunk:
    return EditHunk(step.start, old[step.start : step.end], step.text)
