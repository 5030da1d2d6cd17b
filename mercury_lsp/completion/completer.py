"""From a context to suggestions: typing through needs no model, and silence when unsure."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from threading import Event
from typing import cast

from mercury_engine.api import Answer, Fill, OnStep, SlotView
from mercury_engine.errors import Cancelled

from mercury_lsp.completion.coalescing import Coalescer, Feature, SharedAnswer, SuggestionRequest
from mercury_lsp.completion.drafting import DraftIndex, old_suggestion
from mercury_lsp.completion.next_edits import NextEdits
from mercury_lsp.completion.postprocessing import trim
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.completion.typing_through import SuggestionAnchor, TypingThrough
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import is_secret_line
from mercury_lsp.documents.syntax import first_error
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.worker import HostedEngine
from mercury_lsp.settings import Settings

logger = logging.getLogger(__name__)

MIN_INVOKED_CONFIDENCE = 0.02
"""When the user asks for a suggestion the gate does not apply, but what is surely wrong is cut off."""

MIN_ALTERNATIVE_CONFIDENCE = 0.05
"""Least confidence of what stands behind the first suggestion to choose from: to look at it costs a key."""

MIN_UNASKED_CHARS = 3
"""Of a text that is shown unasked: to accept two saves one key, and that is not worth the look."""

LOOK_AHEAD_AFTER_SECONDS = 0.1
"""Without a request for so long the engine looks ahead."""

INVOKED_CANDIDATES = 3
"""Suggestions to choose from when the user asks for them."""


class Completer:
    """Completes in all open documents; to be used from the event loop's thread."""

    def __init__(self, engines: Engines):
        self.settings = Settings()
        self._lease = engines.lease()
        self._questions = Coalescer()
        self.next_edits = NextEdits(self._questions, self._lease.score)
        self._histories: dict[str, TypingThrough] = {}
        self.drafts = DraftIndex()
        self._ahead: asyncio.TimerHandle | asyncio.Task[None] | None = None
        """Looking ahead, or waiting for the time to do so."""

    @property
    def engine(self) -> HostedEngine | None:
        """None while there is none."""
        return self._lease.engine

    async def load(self, anew: bool = False) -> HostedEngine:
        """Load the engine that the settings name, or join those who have it; requests wait.

        `anew`: although it is loaded, for its files have changed. Raises whatever the loading raises.
        """
        return await self._lease.load(self.settings, anew)

    async def complete(
        self,
        context: CompletionContext,
        snapshot: Snapshot,
        automatic: bool,
        on_step: OnStep | None = None,
        feature: Feature = "inline",
    ) -> list[Suggestion]:
        """Suggestions at the context's cursor, valid for its text only; empty when silence is better.

        `automatic`: the editor asked, not the user, so the silence gate applies. `on_step` sees the canvas after each
        denoise step. Raises Cancelled when a newer request supersedes this one (`SuggestionRequest.supersedes`). When
        the caller's task is cancelled, the fill stops too unless another feature waits for it.
        """
        question = SuggestionRequest(feature, snapshot, context.offset, not automatic, on_step is not None)
        self._questions.supersede(question.supersedes)
        self._stop_looking_ahead()
        if not self.settings.allows(context.language_id) or context.on_secret:
            return []
        history = self._history(context.uri)
        if automatic and (rest := history.rest(snapshot, context.offset)):
            return [rest]
        found = await self._questions.ask(question, partial(self._begin, context, snapshot, automatic, on_step))
        return [each for each in found[:1] if self._worth_showing(each, automatic)] if automatic else found

    def edited(self, uri: str, edits: Sequence[Edit] | None) -> None:
        """Tell of edits in order; None when the whole document was replaced."""
        self.drafts.edited(uri, edits)
        history = self._history(uri)
        if edits is None:
            history.reset()
        for edit in edits or ():
            history.record(edit)

    def accepted(self, suggestion_id: str) -> None:
        """Tell that the user accepted a suggestion whole."""
        for history in self._histories.values():
            history.drop(suggestion_id)

    def forget(self, uri: str) -> None:
        """The document was closed: nobody waits for its suggestions."""
        self._questions.supersede(lambda question: question.snapshot.uri == uri)
        self._stop_looking_ahead()
        self._histories.pop(uri, None)
        self.next_edits.forget(uri)
        self.drafts.forget(uri)

    def close(self) -> None:
        """Stop all work; returns at once."""
        self._stop_looking_ahead()
        self._questions.supersede(lambda _: True)
        self._lease.close()

    def _draft(self, history: TypingThrough, context: CompletionContext, snapshot: Snapshot) -> str:
        """What the canvas starts from."""
        self.drafts.update(snapshot)
        if not (draft := old_suggestion(history, snapshot, context.offset) or self.drafts.draft(context)):
            return ""
        lines = (context.line_prefix + draft).splitlines()
        return "" if any(is_secret_line(line, context.language_id) for line in lines) else draft

    def _begin(
        self, context: CompletionContext, snapshot: Snapshot, automatic: bool, on_step: OnStep | None
    ) -> SharedAnswer:
        """Ask the engine; edits are followed from now on."""
        history, cancel = self._history(context.uri), Event()
        draft = self._draft(history, context, snapshot)
        place = history.ask(snapshot, context.offset)
        request = context.request(
            effort=self.settings.effort,
            max_slots=self.settings.max_slots,
            deadline_ms=self.settings.deadline_ms,
            give_up_below=self._gate() if automatic else MIN_INVOKED_CONFIDENCE,
            candidates=1 if automatic else INVOKED_CANDIDATES,
            check=partial(first_error, snapshot, context.offset),
            draft=draft,
            on_step=_on_loop(on_step, cancel) if on_step is not None else None,
            cancel=cancel,
        )
        pending = SharedAnswer(cancel)

        def told(outcome: Answer | Exception | None) -> None:
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                if cancel.is_set():
                    raise Cancelled("given up as the engine was done")
                fill = cast(Fill | None, outcome)
                pending.settle(self._shown(context, snapshot, automatic, place, fill) if fill is not None else [])
            except Exception as error:
                pending.settle(error)

        self._lease.ask(request, told)
        return pending

    def _shown(
        self, context: CompletionContext, snapshot: Snapshot, automatic: bool, place: SuggestionAnchor, fill: Fill
    ) -> list[Suggestion]:
        """What of the engine's answer is worth showing."""
        found = [Suggestion.at_cursor(context, trim(f.text, context, snapshot), f) for f in (fill, *fill.others)]
        history = self._history(context.uri)
        shown = [
            place.known(s)
            for s in _to_choose_from(found)
            if self._worth_showing(s, automatic) and not (automatic and history.was_deleted(context.offset, s.text))
        ]
        if shown:
            place.suggestion = shown[0]
            self._stop_looking_ahead()
            loop = asyncio.get_running_loop()
            self._ahead = loop.call_later(LOOK_AHEAD_AFTER_SECONDS, self._begin_looking_ahead, context, snapshot, place)
        return shown

    def _begin_looking_ahead(self, context: CompletionContext, snapshot: Snapshot, place: SuggestionAnchor) -> None:
        self._ahead = asyncio.ensure_future(self._look_ahead(context, snapshot, place))

    async def _look_ahead(self, context: CompletionContext, snapshot: Snapshot, place: SuggestionAnchor) -> None:
        """While nobody asks, prepare what follows the shown suggestion should it be accepted."""
        assert place.suggestion is not None
        context = context.after(place.suggestion.text)
        cancel = Event()
        request = context.request(max_slots=self.settings.max_slots, give_up_below=self._gate(), cancel=cancel)
        try:
            fill = await self._lease.fill(request, ahead=True)
        except Cancelled:
            return
        except Exception:  # nobody asked; whoever does is told
            logger.warning("Could not look ahead.", exc_info=True)
            return
        finally:
            cancel.set()  # when this task is cancelled, the worker stops before its next step
        if fill is None:
            return
        suggestion = Suggestion.at_cursor(context, trim(fill.text, context, snapshot), fill)
        place.ahead = suggestion if self._worth_showing(suggestion, automatic=True) else None

    def _stop_looking_ahead(self) -> None:
        """Whoever asks comes first."""
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None

    def _worth_showing(self, suggestion: Suggestion, automatic: bool) -> bool:
        if not suggestion.text or not automatic:
            return bool(suggestion.text)
        return len(suggestion.text.strip()) >= MIN_UNASKED_CHARS and suggestion.confidence >= self._gate()

    def _gate(self) -> float:
        if self.settings.gate is not None:
            return self.settings.gate
        return self._lease.engine.gate if self._lease.engine else 0.0

    def _history(self, uri: str) -> TypingThrough:
        return self._histories.setdefault(uri, TypingThrough())


def _on_loop(on_step: OnStep, cancel: Event) -> OnStep:
    """To be called on the engine's thread; runs on the event loop's, and no more once the fill is cancelled."""
    loop = asyncio.get_running_loop()

    def tell(slots: tuple[SlotView, ...]) -> None:
        if not cancel.is_set():
            on_step(slots)

    def hand_over(slots: tuple[SlotView, ...]) -> None:
        loop.call_soon_threadsafe(tell, slots)

    return hand_over


def _to_choose_from(suggestions: list[Suggestion]) -> list[Suggestion]:
    """The first that has text, and the sure enough that differ from it; trimming may have made two of them alike."""
    different: dict[str, Suggestion] = {}
    for suggestion in suggestions:
        if suggestion.text and (not different or suggestion.confidence >= MIN_ALTERNATIVE_CONFIDENCE):
            different.setdefault(suggestion.text, suggestion)
    return list(different.values())
