"""Asks the model about an edit site: is the new text more likely there than the old one?"""

import math
from dataclasses import replace

from mercury_engine.api import EditHunk as ShownChange
from mercury_engine.api import FillRequest
from mercury_engine.prompt.edit_layout import history_block

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.context.context import ContextBuilder, without_start
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret

MIN_PROBABILITY = 0.2
"""Least probability of the new text for an offer; nine in ten unasked offers are then right."""


MIN_RENAMED_PROBABILITY = 0.001
"""The same where a function, a member or a name of the file was renamed at its declaration: its uses are undefined
until they follow. At 0.2 the model loses half of these names."""


MIN_REPEATED_PROBABILITY = 0.02
"""The same for a change that the user has made in two lines of the document."""


def scoring_request(site: EditSite, change: str, snapshot: Snapshot, path: str) -> FillRequest | None:
    """The gap in place of the old text, with the user's change (`change_block`), if any, as the last far block.

    None if a line of the site looks like a secret, with the old text or the new one; the change's own line must not.
    """
    context = ContextBuilder().build(snapshot, site.start, path or None)
    if context.on_secret or edit_shows_secret(snapshot, site.start, site.end, site.new):
        return None
    suffix = without_start(context.suffix, len(site.old))
    far = (*context.far, change) if change else context.far
    return replace(context.request(), far=far, suffix=suffix)


def change_block(change: Replacement, snapshot: Snapshot) -> str:
    """The line of a change, before and after, as an edit history block."""
    before, after = (f"{line}\n" for line in change.lines(snapshot))
    return history_block([ShownChange(0, before, after)], snapshot.language_id)


def hunk_block(hunk: Hunk, uri: str) -> str:
    """A hunk as an edit history block beside the document `uri`; empty if its lines look like secrets."""
    found = shown([hunk], uri)
    return history_block(found, hunk.language_id) if found else ""


def probability_of_new(old: float, new: float) -> float:
    """The probability of the new text, given that it is one of the two; takes log-probabilities in nats."""
    return 1 / (1 + math.exp(min(700.0, old - new)))
