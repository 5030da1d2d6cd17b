"""Faults of scenarios that reading them does not show: code that does not parse."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from mercury_lab.editing.scenarios import Scenario
from mercury_lsp.documents.languages import LANGUAGES, language_of, new_parser

BEGUN_KINDS = ("complete", "rewrite")
"""Kinds in which the user is in the middle of a change, so that the code may be broken."""


def language(scenario: Scenario) -> str:
    """The language of the file in which the next edit is, or the cursor."""
    path = scenario.wants[0].path if scenario.wants else scenario.cursor[0]
    return language_of(PurePath(path).name)


def faults(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """What is wrong with the scenarios, one line each."""
    for scenario in scenarios:
        now = scenario.now
        states: list[tuple[str, Mapping[str, str]]] = [("before", scenario.files)]
        if scenario.kind not in BEGUN_KINDS:
            states.append(("after its edits", now))
        states += [(f"after the edit of line {want.start + 1}", want.apply(now)) for want in scenario.wants]
        for when, files in states:
            for path, text in files.items():
                name = language_of(path)
                if name not in LANGUAGES or new_parser(name).parse(text.encode()).root_node.has_error:
                    yield f"{scenario.name}: {path} does not parse {when}"
