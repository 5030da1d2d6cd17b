"""Which commits are edits that a user might make in one go, and why the others are dropped."""

import re
from collections.abc import Sequence

from mercury_engine.text.lines import lines_of

from mercury_lab.training.commits.commit_edit import Step
from mercury_lab.training.commits.history import Commit, LineHunk
from mercury_lab.training.data import filters
from mercury_lab.training.data.sources import held_out_in

MAX_FILES = 6
"""Source files; a commit that changes more of them is a sweep."""

MAX_HUNKS = 8
MAX_HUNK_LINES = 30
"""Lines of a hunk, removed or inserted, whichever is more."""

MERGE_DISTANCE_LINES = 1
"""Equal lines between two hunks at which they are merged, or fewer."""

MIN_ALIKE_FILES = 3
"""Files; if so many are changed and all hunks are the same, a program did it."""

CODE_LANGUAGES = frozenset(filters.SUFFIXES) - filters.DATA_LANGUAGES

CODE_SUFFIXES = (*(suffix for name in sorted(CODE_LANGUAGES) for suffix in filters.SUFFIXES[name]), ".h")

BOT = re.compile(r"\[bot\]|\bbot\b|dependabot|renovate|pre-commit|github-actions", re.I)
_SWEEP = re.compile(
    r"\b(?:re-?format\w*|format code|formatting|prettier|eslint|lint\w*|ruff|isort|gofmt|goimports|rustfmt|clang-format"
    r"|clippy|pyupgrade|whitespaces?|indent\w*|copyright|licen[cs]e headers?|typos?|spelling"
    r"|bump\w*|release|version \d|prepare (?:for|next))\b|^(?:style|chore\(release\))\b|\bblack\b",
    re.I,
)


def code_files(commit: Commit) -> list[int]:
    """Indices of the commit's files in languages of code, by path alone."""
    return [n for n, file in enumerate(commit.files) if filters.language_of(file.path, b"") in CODE_LANGUAGES]


def commit_fault(commit: Commit, held_names: frozenset[str]) -> str | None:
    """Why a commit is dropped without looking at its text, or None."""
    changed = [commit.files[n] for n in code_files(commit)]
    if not changed:
        return "no code"
    if len(changed) > MAX_FILES:
        return "many files"
    if any(file.status != "M" for file in changed):
        return "adds, removes or renames files"
    if BOT.search(commit.author) or _SWEEP.search(commit.subject):
        return "made by a program"
    for file in changed:
        if held_out_in(file.path, held_names):
            return "held out"
        if fault := filters.path_fault(file.path, filters.language_of(file.path, b"") or ""):
            return fault
    return None


def merged(hunks: Sequence[LineHunk]) -> list[LineHunk]:
    """The hunks of a file, those that nearly touch as one."""
    found: list[LineHunk] = []
    for hunk in hunks:
        if found and hunk.start - found[-1].end <= MERGE_DISTANCE_LINES:
            last = found.pop()
            hunk = LineHunk(last.start, hunk.end, last.new_start, hunk.new_end)
        found.append(hunk)
    return found


def steps_of(file: int, hunks: Sequence[LineHunk], new: str) -> list[Step]:
    """The steps of one file, given its new text."""
    lines = lines_of(new)
    return [Step(file, hunk.start, hunk.end, "".join(lines[hunk.new_start : hunk.new_end])) for hunk in merged(hunks)]


def steps_fault(steps: Sequence[Step], texts: Sequence[str]) -> str | None:
    """Why the steps of a commit are no edit by hand, or None; `texts` are the files before the commit."""
    if not steps:
        return "no code"
    if len(steps) > MAX_HUNKS:
        return "many hunks"
    if any(max(step.end - step.start, step.text.count("\n")) > MAX_HUNK_LINES for step in steps):
        return "long hunk"
    files = [lines_of(text) for text in texts]
    changes = [("".join(files[step.file][step.start : step.end]).split(), step.text.split()) for step in steps]
    if any(filters.has_secret(step.text) for step in steps):
        return "secret"
    if all(removed == inserted for removed, inserted in changes):
        return "white space only"
    if len({step.file for step in steps}) >= MIN_ALIKE_FILES and all(change == changes[0] for change in changes):
        return "files alike"
    return None
