"""Edits that rules propose, and the first one that may be shown. The rules are exact, so no model judges them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from mercury_lsp.completion.next_edits.edits import joined
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Renaming, Suggestion
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret
from mercury_lsp.documents.syntax import breaks

MAX_OFFERED = 8
"""Most places of a renaming that are examined at a time."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits in one line of a document's version, from left to right, to be made at once."""

    snapshot: Snapshot
    edits: tuple[Edit, ...]
    renaming: Renaming | None = None
    """The renaming that it continues."""

    @property
    def whole(self) -> Edit:
        """Its edits as one."""
        return joined(self.edits, self.snapshot)


def renamed_lines(renaming: Renaming, snapshot: Snapshot) -> Iterator[Proposal]:
    """What remains of a renaming, line by line, in the order of the lines' first places."""
    lines: dict[int, list[Edit]] = {}
    for each in renaming.left[:MAX_OFFERED]:
        lines.setdefault(snapshot.source.line_of(each.start), []).append(each)
    for edits in lines.values():
        ordered = tuple(sorted(edits, key=lambda each: each.start))
        yield Proposal(snapshot, ordered, replace(renaming, offered=len(edits)))


def first_shown(proposals: Iterable[Proposal], silence: Silence) -> tuple[Proposal, Suggestion] | None:
    """The first proposal that breaks no syntax and shows no secret; adds to `silence` why others aren't shown."""
    started = perf_counter()
    for each in proposals:
        snapshot, edit = each.snapshot, each.whole
        line = snapshot.source.line_of(edit.start) + 1
        if breaks(snapshot, edit.start, edit.end, edit.inserted):
            silence.add(f"line {line}: a rule's edit would break the syntax", snapshot.uri)
        elif edit_shows_secret(snapshot, edit.start, edit.end, edit.inserted):
            silence.add(f"line {line}: lines like secrets are not edited", snapshot.uri)
        else:
            found = Suggestion.replacing(snapshot, edit, 1.0, perf_counter() - started)
            return each, replace(found, renaming=each.renaming)
    return None
