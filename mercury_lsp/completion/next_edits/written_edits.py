"""The edits of a model that was trained on edits: which one of an answer is shown, and which when that is taken."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mercury_engine.utility import Utility

from mercury_lsp.completion.next_edits.edit_sites import EditSite, joined
from mercury_lsp.completion.next_edits.filters import BREAKS, objection
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.ledger import Ledger
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines
from mercury_lsp.completion.price import least_probability_of_edit
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Snapshot


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a document is once the edit on display is taken, and what is left of the answer then."""

    uri: str
    text: str
    edits: tuple[RewrittenLines, ...]


class WrittenEdits:
    """Picks among the edits of an answer; for the event loop's thread."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._taken: _Taken | None = None

    def rest(self, snapshot: Snapshot) -> Sequence[RewrittenLines] | None:
        """What is left of the last answer; None unless its edit on display was the last change of the document."""
        taken = self._taken
        if taken is None or taken.uri != snapshot.uri or len(taken.text) != snapshot.length:
            return None
        return taken.edits if taken.text == snapshot.text else None

    @property
    def text_if_last(self) -> str | None:
        """The document's text once the edit on display is taken, if nothing is left of its answer then."""
        return None if self._taken is None or self._taken.edits else self._taken.text

    def first(
        self,
        snapshot: Snapshot,
        edits: Sequence[RewrittenLines],
        cursor: int | None,
        hunks: Sequence[Hunk],
        silence: Silence,
        seconds: float,
        gate: Utility | None = None,
    ) -> Suggestion | None:
        """The first edit at or below the cursor's line, or else above, that may be shown; all of them as one where one
        alone breaks the syntax. Why others are not shown is added to `silence`. Without a `gate` unlikely ones are.
        """
        begin = 0 if cursor is None else snapshot.source.line_bounds(cursor)[0]
        ordered = [each for each in edits if max(each.start + 1, each.end) > begin]
        ordered += reversed([each for each in edits if each not in ordered])
        reasons = [self._objection(snapshot, each, hunks, gate) for each in ordered]
        if BREAKS in reasons and len(edits) > 1:
            whole = _joined(snapshot, edits)
            if (why_not := self._objection(snapshot, whole, hunks, gate)) is None:
                return self._offered(snapshot, whole, (), seconds)
            silence.add(f"the model's edits are not shown together, {why_not}", snapshot.uri)
        for each, why_not in zip(ordered, reasons, strict=True):
            if why_not is None:
                others = [other for other in edits if other is not each]
                return self._offered(snapshot, each, others, seconds)
            line = snapshot.source.line_of(each.start) + 1
            silence.add(f"line {line}: an edit of the model's is not shown, {why_not}", snapshot.uri)
        return None

    def _objection(
        self, snapshot: Snapshot, edit: RewrittenLines, hunks: Sequence[Hunk], gate: Utility | None
    ) -> str | None:
        old = snapshot.slice(edit.start, edit.end)
        least = 0.0 if gate is None else least_probability_of_edit(old, edit.text, gate)
        if edit.probability < least:
            return f"its probability is {edit.probability:.2f}, and it would be worth showing from {least:.2f} on"
        if self._ledger.is_declined(snapshot.uri, _site(snapshot, edit)):
            return "it was offered before"
        return objection(snapshot, edit.start, edit.end, edit.text, hunks, edit.at_risk)

    def _offered(
        self, snapshot: Snapshot, edit: RewrittenLines, others: Sequence[RewrittenLines], seconds: float
    ) -> Suggestion:
        found = Suggestion.replacing(snapshot, edit.start, edit.end, edit.text, edit.probability, seconds, "region")
        self._ledger.offer(found.id, snapshot.uri, [_site(snapshot, edit)])
        grown = len(edit.text) - (edit.end - edit.start)
        text = snapshot.text[: edit.start] + edit.text + snapshot.text[edit.end :]
        self._taken = _Taken(snapshot.uri, text, tuple(_moved(each, edit.start, grown) for each in others))
        return found


def _site(snapshot: Snapshot, edit: RewrittenLines) -> EditSite:
    return EditSite(edit.start, snapshot.slice(edit.start, edit.end), edit.text)


def _moved(edit: RewrittenLines, start: int, grown: int) -> RewrittenLines:
    """An edit after another one at `start` by which the text has grown."""
    return edit if edit.start < start else replace(edit, start=edit.start + grown, end=edit.end + grown)


def _joined(snapshot: Snapshot, edits: Sequence[RewrittenLines]) -> RewrittenLines:
    """Edits, from the top down, as one."""
    whole = joined([_site(snapshot, each) for each in edits], snapshot)
    probability = min(each.probability for each in edits)
    return RewrittenLines(whole.start, whole.end, whole.new, probability, edits[0].at_risk)
