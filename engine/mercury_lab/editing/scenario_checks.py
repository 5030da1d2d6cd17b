"""Faults of scenarios that reading them does not show: broken code, files of odd size, duplicates."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from mercury_lab.editing.scenarios import Scenario
from mercury_lsp.documents.languages import LANGUAGES, language_of, new_parser

FILE_LINES = range(4, 81)
"""Lines of a file."""

BEGUN_KINDS = ("complete", "rewrite")
"""Kinds in which the user is in the middle of a change, so that the code may be broken."""


def faults(scenarios: Sequence[Scenario]) -> list[str]:
    """What is wrong with the scenarios, one line each."""
    return [*_broken(scenarios), *_odd_sizes(scenarios), *_duplicates(scenarios)]


def language(scenario: Scenario) -> str:
    """The language of the file in which the next edit is, or the cursor."""
    path = scenario.wants[0].path if scenario.wants else scenario.cursor[0]
    return language_of(PurePath(path).name)


def _broken(scenarios: Iterable[Scenario]) -> Iterator[str]:
    for scenario in scenarios:
        now = scenario.now
        states: list[tuple[str, Mapping[str, str]]] = [("before", scenario.files)]
        if scenario.kind not in BEGUN_KINDS:
            states.append(("after its edits", now))
        states += [(f"after the edit of line {want.start + 1}", want.apply(now)) for want in scenario.wants]
        for when, files in states:
            for path, text in files.items():
                if line := _error_line(path, text):
                    yield f"{scenario.name}: {path} does not parse {when} (line {line})"


def _error_line(path: str, text: str) -> int:
    """The first line with a syntax error, from 1; 0 for none."""
    name = language_of(path)
    if name not in LANGUAGES:
        return 1
    nodes = [new_parser(name).parse(text.encode()).root_node]
    if not nodes[0].has_error:
        return 0
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
        nodes += reversed(node.children)
    return 1


def _odd_sizes(scenarios: Iterable[Scenario]) -> Iterator[str]:
    for (source, path), count in {(s.source, p): t.count("\n") for s in scenarios for p, t in s.files.items()}.items():
        if count not in FILE_LINES:
            yield f"{source}: {path} has {count} lines; {FILE_LINES.start} to {FILE_LINES.stop - 1} are read"


def _duplicates(scenarios: Iterable[Scenario]) -> Iterator[str]:
    keys = {s.name: (tuple(sorted(s.files.items())), s.edits, s.cursor) for s in scenarios}
    counts = Counter(keys.values())
    for name, key in keys.items():
        if counts[key] > 1:
            yield f"{name}: another scenario has the same files, edits and cursor"
