"""What the model is asked of a place: whether the new text is likelier there than the old one."""

import math
from collections.abc import Sequence
from threading import Event

from mercury_engine.api import FillRequest
from mercury_engine.prompt.edit_layout import EditHunk as ShownChange
from mercury_engine.prompt.edit_layout import history_block

from mercury_lsp.completion.next_edits.places import EditSite
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import is_secret_line

MIN_PROBABILITY = 0.2
"""Least chance of the new text at which it is offered: of what is offered unasked nine in ten are right."""


def question(place: EditSite, change: Replacement, snapshot: Snapshot, path: str, cancel: Event) -> FillRequest | None:
    """The gap in the place of the old text, with the change made before as the last far block.

    None where the line of the place looks like a secret, as it is or with the new text. That of the change must not.
    """
    context = ContextBuilder().build(snapshot, place.start, path or None)
    rest = context.line_suffix[len(place.old) :]
    lines = (context.line_prefix + text + rest for text in (place.old, place.new))
    if any(is_secret_line(line, snapshot.language_id) for line in lines):
        return None
    suffix = _without_start(context.suffix, len(place.old))
    return context.request(far=(*context.far, shown(change, snapshot)), suffix=suffix, cancel=cancel)


def shown(change: Replacement, snapshot: Snapshot) -> str:
    """The line of a change, before and after, as a block of recent edits."""
    before, after = (f"{line}\n" for line in change.lines(snapshot))
    return history_block([ShownChange(0, before, after)], snapshot.language_id)


def chance(old: float, new: float) -> float:
    """That of the new text if it must be one of both; takes their nats."""
    return 1 / (1 + math.exp(min(700.0, old - new)))


def _without_start(blocks: Sequence[str], count: int) -> tuple[str, ...]:
    """Blocks of text without their first characters."""
    kept = []
    for block in blocks:
        kept.append(block[count:])
        count = max(0, count - len(block))
    return tuple(filter(None, kept))
