"""An argument that the user has added at the end of two calls of a function goes into its other calls, too.

+load(path, options)
+load(other, options)        so        load(find("a"), options)
"""

import re
from collections.abc import Iterator, Sequence

from mercury_engine.text.brackets import bracket_step, outside_strings

from mercury_lsp.completion.next_edits.edit_sites import EditSite, text_around
from mercury_lsp.completion.next_edits.examples import Example
from mercury_lsp.completion.next_edits.syntax_kind import is_declared_at
from mercury_lsp.documents.document import Snapshot

MAX_CALL_CHARS = 400
MAX_CALLS = 40
"""Longest call, and most of them in a document, the nearest ones: each takes a tenth of a millisecond."""


def call_sites(first: Example, second: Example, snapshot: Snapshot) -> Iterator[EditSite]:
    """The ends of the arguments of other calls, if both examples add the same one there; none in declarations."""
    name = _called(second.before)
    is_added = not second.old.strip() and second.new.startswith(",") and first.after[:1] == second.after[:1] == (")",)
    if not is_added or not name or name != _called(first.before):
        return
    here = second.hunk.offset_in(snapshot)
    start, text = text_around(here, snapshot)
    calls = sorted(
        re.finditer(rf"(?<!\w){re.escape(name)}(?=\()", text), key=lambda call: abs(start + call.start() - here)
    )
    for found in sorted(calls[:MAX_CALLS], key=re.Match.start):
        call = text[found.end() : found.end() + MAX_CALL_CHARS]
        end = next((at for at, _, depth in outside_strings(call) if depth == 0), 0)
        given = call[:end].rstrip()
        is_like = end and given[-1] not in "(," and second.new.strip(", ") not in given
        if is_like and not is_declared_at(snapshot, start + found.start()):
            yield EditSite(start + found.end() + len(given), "", second.new)


def _called(before: Sequence[str]) -> str:
    """The name before the bracket that the tokens of a line leave open; empty if it is no call."""
    depth = 0
    for at in range(len(before) - 1, 0, -1):
        depth += bracket_step(before[at])
        if depth > 0:
            return before[at - 1] if before[at] == "(" and before[at - 1].isidentifier() else ""
    return ""
