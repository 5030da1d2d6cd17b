"""Cases for the ranking: moments of commits with their candidates, features and the places that are right."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby, repeat

import numpy as np
import numpy.typing as npt
from mercury_engine.places.candidates import TOLERANCE_LINES, Candidate, candidates, names_of, occurrences
from mercury_engine.places.features import Array, features
from mercury_engine.text.lines import lines_of

from mercury_lab.training.commits.commit_edit import CommitEdit
from mercury_lab.training.commits.moments import Moment, moments

MOMENTS_PER_EDIT = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A moment, its candidates [C], their features [C, F], and which of them cover a step that is left."""

    moment: Moment
    candidates: list[Candidate]
    rows: Array
    is_right: npt.NDArray[np.bool_]
    is_next: npt.NDArray[np.bool_]
    """Which candidates cover the step that comes next in the moment's order."""


def cases(edits: Sequence[CommitEdit], seed: int) -> Iterator[Case]:
    """Cases of edits without steps that only change white space, edit by edit; equal seeds give equal cases."""
    kept = [edit for edit in edits if not any(_is_blank(edit, number) for number in range(len(edit.steps)))]
    for edit in kept:
        rng = random.Random(f"places {seed} {edit.commit}")
        others = [each for each in kept if each.repository == edit.repository and each is not edit]
        for moment in moments(edit, rng, MOMENTS_PER_EDIT, rng.choice(others) if others else None):
            yield case_of(moment)


def all_cases(edits: Sequence[CommitEdit], seed: int, workers: int = 1) -> list[Case]:
    """The cases of edits of several repositories, each made in one of the worker processes."""
    groups = [list(own) for _, own in groupby(edits, key=lambda edit: edit.repository)]
    if workers == 1:
        return [case for group in groups for case in cases(group, seed)]
    with ProcessPoolExecutor(workers) as pool:
        return [case for found in pool.map(_listed, groups, repeat(seed)) for case in found]


def _listed(edits: Sequence[CommitEdit], seed: int) -> list[Case]:
    return list(cases(edits, seed))


def case_of(moment: Moment) -> Case:
    """The moment with its candidates; the features see nothing of the steps that are left."""
    situation = moment.situation
    names = names_of(situation)
    found = occurrences(situation, names)
    listed = candidates(situation, names, found)
    rows = features(situation, listed, names, found)
    right = np.array([[covers(c, s.document, s.start, s.end) for s in moment.open] for c in listed], np.bool_)
    right = right.reshape(len(listed), len(moment.open))
    return Case(moment, listed, rows, np.logical_or.reduce(right, 1), np.logical_or.reduce(right[:, :1], 1))


def covers(candidate: Candidate, document: int, start: int, end: int) -> bool:
    """Whether the candidate is at most TOLERANCE_LINES away from lines [start, end), or from the gap at `start`."""
    if candidate.document != document:
        return False
    first, last = (start, end - 1) if start < end else (start - 1, start)
    return first - TOLERANCE_LINES <= candidate.line <= last + TOLERANCE_LINES


def _is_blank(edit: CommitEdit, number: int) -> bool:
    step = edit.steps[number]
    removed = lines_of(edit.files[step.file].text)[step.start : step.end]
    return "".join(removed).split() == step.text.split()
