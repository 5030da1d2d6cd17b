"""From a context to suggestions: no model call while the user types through one, and silence when unsure."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

from mercury_engine.api import Check, Control, EditHunk, Fill, FillRequest, InferenceEngine, OnStep, SlotView
from mercury_engine.errors import Cancelled
from mercury_engine.utility import Utility

from mercury_lsp.completion.coalescing import Coalescer, SuggestionRequest
from mercury_lsp.completion.next_edits import NextEdits
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewriting import DEADLINE_MS, RewrittenLines, rewrite_region
from mercury_lsp.completion.postprocessing import postprocess, without_standing
from mercury_lsp.completion.price import OF_EDITS, Price
from mercury_lsp.completion.silence import why_silent
from mercury_lsp.completion.suggestions import Suggestion, differs
from mercury_lsp.completion.typing_through import SuggestionAnchor, TypingThrough
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.syntax import first_error
from mercury_lsp.engine_host.edit_engine import EditEngine
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.settings import Settings

logger = logging.getLogger(__name__)

MIN_INVOKED_CONFIDENCE = 0.02
"""Least confidence of a suggestion that the user asked for: utility does not matter, but wrong text is cut off."""

MIN_ALTERNATIVE_CONFIDENCE = 0.05
"""Least confidence of an alternative to the first suggestion: looking at one costs a key."""

PREPARE_KEYS_AFTER_SECONDS = 0.03
"""Pause without a request, in seconds, after which the engine fills after likely next keys; few keys follow faster."""

LOOK_AHEAD_AFTER_SECONDS = 0.1
"""Pause without a request, in seconds, after which the engine looks ahead."""

READ_ON_AFTER_SECONDS = 0.3
"""Pause before it reads more context. Longer, because a key waits for the current block: 0.1 s and more with 0.5B."""

FIRST_READ_TOKENS = 128
"""Context tokens read before an automatic suggestion, about a chunk. The rest is read in pauses."""

INVOKED_CANDIDATES = 3
"""Number of suggestions requested when the user asks for them."""


class Completer:
    """Completes in all open documents of one connection; used on the event loop's thread only."""

    def __init__(self, engines: Engines):
        self.settings = Settings()
        self.price = Price()
        self._lease = engines.lease()
        self.edit_engine = EditEngine(engines, self._lease)
        self._coalescer = Coalescer()
        self.next_edits = NextEdits(self._coalescer)
        self.stays_here: Callable[[str], bool] = lambda uri: False
        """Whether the text of a document must not leave this machine."""
        self.silences: dict[str, str] = {}
        """Why the last request at each document's cursor was answered with nothing."""
        self._typing = defaultdict[str, TypingThrough](TypingThrough)
        self._ahead: asyncio.TimerHandle | asyncio.Task[None] | None = None
        """The task that looks ahead, or the timer that will start it."""

    @property
    def engine(self) -> InferenceEngine | None:
        """The loaded engine; None before it is loaded."""
        return self._lease.engine

    async def load(self) -> InferenceEngine:
        """Load the engine that the settings name, or share the one of another connection; requests wait meanwhile.

        Raises whatever loading raises.
        """
        engine = await self._lease.load(self.settings)
        self.allow_rewrites()
        return engine

    def configure(self, settings: Settings) -> None:
        """Apply these settings; requests that they forbid find nothing. An edit model is loaded on first use."""
        self.settings = settings
        self._coalescer.silence_where(lambda request: not _is_allowed(request, settings))
        self._stop_looking_ahead()
        self.next_edits.regions.ahead.drop()
        self.edit_engine.use(settings)
        self.allow_rewrites()

    def allow_rewrites(self) -> None:
        """Have regions rewritten if the model can; other models neither find the place nor make an edit."""
        self.next_edits.regions.rewrite = self._rewrite_region if self.edit_engine.can_rewrite else None
        self.next_edits.regions.writes_edits = lambda: self.edit_engine.writes_edits
        self.next_edits.regions.looks_ahead = lambda: self.edit_engine.looks_ahead
        self.next_edits.regions.gate = partial(self.price.gate, OF_EDITS, self.settings.eagerness)

    async def _rewrite_region(
        self, region: Place, history: Sequence[EditHunk], enough: float, cancel: Event
    ) -> Sequence[RewrittenLines] | None:
        is_remote, stays_here = self.edit_engine.is_remote, self.stays_here(region.snapshot.uri)
        if stays_here and self.edit_engine.is_elsewhere:
            return None
        if (family := await self.edit_engine.family()) is None and is_remote:
            return []
        deadline_ms = None if self.settings.wait_for_context or is_remote else DEADLINE_MS
        control = Control(cancel, stays_here=stays_here)
        return await rewrite_region(self.edit_engine.rewrite, region, history, enough, deadline_ms, control, family)

    async def complete(self, context: CompletionContext, request: SuggestionRequest) -> list[Suggestion]:
        """Suggestions at the context's cursor, valid for its text only; empty when silence is better.

        The silence gate applies unless the user invoked the request; a user who asks where a line is complete gets the
        next lines. Raises Cancelled when a newer request supersedes this one (`SuggestionRequest.supersedes`). When
        the caller's task is cancelled, the fill stops too unless another feature waits for it.
        """
        if not self.settings.allows(context.language_id):
            return []
        if context.on_secret:
            self.silences[context.uri] = "the line looks like a secret"
            return []
        if not request.invoked:
            return await self._automatic(context, request)
        found = await self._coalescer.answer(request, partial(self._start, context, request))
        lines = context.at_line_end()
        if found or lines == context or not self.settings.allows(context.language_id):
            return found
        return await self._coalescer.answer(request, partial(self._start, lines, request))

    async def _automatic(self, context: CompletionContext, request: SuggestionRequest) -> list[Suggestion]:
        """At most one suggestion, if it passes the silence gate."""
        typing = self._typing[context.uri]
        if remainder := typing.remainder(request.snapshot, context.offset):
            return [remainder]
        if typing.has_finished_line(context.offset):
            context = context.at_line_end()
        found = await self._coalescer.answer(request, partial(self._start, context, request))
        why = self._why_silent(found[0], context) if found else None
        if why is not None:
            self.silences[context.uri] = why
        return found[:1] if why is None else []

    def supersede(self, request: SuggestionRequest) -> None:
        """Cancel what a newer request makes obsolete, no matter who answers that one."""
        self._coalescer.cancel_where(request.supersedes)
        self._stop_looking_ahead()
        self.next_edits.regions.ahead.keep_for(request.snapshot)
        self.silences.pop(request.snapshot.uri, None)

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """Record edits, in order."""
        typing = self._typing[uri]
        for edit in edits:
            if typing.record(edit) and self.settings.display == "text":  # else it may never have been seen
                self.price.refused()
        self.next_edits.edited(uri, edits)

    def accepted(self, suggestion_id: str) -> None:
        for typing in self._typing.values():
            typing.accepted(suggestion_id)

    def forget(self, uri: str) -> None:
        """The document was closed: cancel its requests and drop what is known of it."""
        self._coalescer.cancel_where(lambda request: request.snapshot.uri == uri)
        self._stop_looking_ahead()
        self._typing.pop(uri, None)
        self.silences.pop(uri, None)
        self.next_edits.forget(uri)

    def close(self) -> None:
        """Stop all work; returns at once."""
        self._stop_looking_ahead()
        self._coalescer.cancel_where(lambda _: True)
        self.next_edits.regions.ahead.drop()
        self._lease.close()
        self.edit_engine.close()

    def _start(
        self, context: CompletionContext, request: SuggestionRequest, cancel: Event
    ) -> Coroutine[Any, Any, list[Suggestion]]:
        """Begin a fill; later edits count as typed after the request."""
        snapshot, automatic = request.snapshot, not request.invoked
        anchor = self._typing[context.uri].anchor_at(snapshot, context.offset)
        fill_request = replace(
            context.request(),
            effort=self.settings.effort,
            deadline_ms=self.settings.deadline_ms,
            unread_limit=FIRST_READ_TOKENS if automatic and not self.settings.wait_for_context else None,
            utility=self._utility(context.language_id) if automatic else None,
            give_up_below=0.0 if automatic else MIN_INVOKED_CONFIDENCE,
            candidates=1 if automatic else INVOKED_CANDIDATES,
            foresees=automatic,
        )
        watch = None if request.on_step is None else _on_loop(request.on_step, cancel)
        check, stays_here = partial(first_error, snapshot, context.offset), self.stays_here(context.uri)
        control = Control(cancel, watch, check, stays_here=stays_here)

        async def filled() -> list[Suggestion]:
            fill: Fill | None = await self._lease.answer(fill_request, control)
            if cancel.is_set():
                raise Cancelled("cancelled just as the engine finished")
            return self._to_suggestions(context, request, anchor, fill) if fill is not None else []

        return filled()

    def _to_suggestions(
        self, context: CompletionContext, request: SuggestionRequest, anchor: SuggestionAnchor, fill: Fill
    ) -> list[Suggestion]:
        """The engine's fills that are worth showing, postprocessed; the user may type through the first one."""
        snapshot, automatic, fills = request.snapshot, not request.invoked, (fill, *fill.others)
        texts = [postprocess(each.text, context, snapshot) for each in fills]
        if not automatic:
            texts = [without_standing(text, context, snapshot) for text in texts]
        found = [Suggestion.at_cursor(context, *each) for each in zip(texts, fills, strict=True)]
        typing = self._typing[context.uri]
        shown = [
            anchor.with_known_id(s)
            for s in _alternatives(found)
            if not automatic or (self._why_silent(s, context) is None and not typing.was_taken_back(context, s.text))
        ]
        if not shown:
            taken_back = "you have just deleted it, or typed something else there"
            why = self._why_silent(found[0], context) or taken_back
            level = self.price.explanation(self.settings.eagerness, context.language_id)
            self.silences[context.uri] = f"{why} ({level})" if automatic else why
        if shown:
            anchor.suggestion = shown[0]
        typed_through = shown[0].text[0] if shown else ""
        keys = [each for each in fill.next_characters if each != typed_through and not fill.tokens_unread]
        if keys:
            self._work_later(PREPARE_KEYS_AFTER_SECONDS, self._prepare_keys, context, snapshot, anchor, keys)
        elif shown or fill.tokens_unread:
            pause = READ_ON_AFTER_SECONDS if fill.tokens_unread else LOOK_AHEAD_AFTER_SECONDS
            self._work_later(pause, self._work_ahead, context, snapshot, anchor, fill.tokens_unread > 0)
        return shown

    def _work_later(self, pause: float, work: Callable[..., Coroutine[Any, Any, None]], *about: object) -> None:
        """Start work for which no user waits, unless a request comes before the pause is over."""

        def start() -> None:
            self._ahead = asyncio.ensure_future(work(*about))

        self._stop_looking_ahead()
        self._ahead = asyncio.get_running_loop().call_later(pause, start)

    async def _prepare_keys(
        self, context: CompletionContext, snapshot: Snapshot, anchor: SuggestionAnchor, keys: Sequence[str]
    ) -> None:
        """Have the engine read what it would write after each of these keys, so that it need not when one comes."""
        for key in keys:
            request = replace(self._request_ahead(context.after(key)), unread_limit=FIRST_READ_TOKENS)
            await self._fill_ahead(request, context.uri)
        if anchor.suggestion is not None:
            await asyncio.sleep(LOOK_AHEAD_AFTER_SECONDS - PREPARE_KEYS_AFTER_SECONDS)
            await self._work_ahead(context, snapshot, anchor, False)

    async def _work_ahead(
        self, context: CompletionContext, snapshot: Snapshot, anchor: SuggestionAnchor, reads_on: bool
    ) -> None:
        """While the engine is idle, read the rest of the context, then prepare what follows the text on display."""
        if anchor.suggestion is None:
            await self._fill_ahead(replace(context.request(), max_steps=0), context.uri)
            return
        if reads_on and (better := await self._worth_showing(context, snapshot)) is not None:
            is_shorter = len(better.text) < len(anchor.suggestion.text)
            anchor.suggestion = anchor.suggestion if is_shorter else better
        shown = anchor.suggestion
        after = replace(context.after(shown.text), multiline=False)
        after = after.at_line_end() if shown.is_finished else after
        anchor.ahead = await self._worth_showing(after, snapshot, shown.text)

    def _request_ahead(self, context: CompletionContext) -> FillRequest:
        """What typing on to a context would ask for, without a deadline."""
        return replace(context.request(), effort=self.settings.effort, utility=self._utility(context.language_id))

    async def _fill_ahead(self, request: FillRequest, uri: str, check: Check | None = None) -> Fill | None:
        """A fill that no user waits for; None if it was cancelled or failed."""
        control = Control(check=check, stays_here=self.stays_here(uri))
        try:
            fill: Fill | None = await self._lease.answer(request, control, ahead=True)
            return fill
        except Cancelled:
            return None
        except Exception:  # no request failed; if the next one does, it reports why
            logger.warning("Could not look ahead.", exc_info=True)
            return None
        finally:
            control.cancel.set()  # when this task is cancelled, the engine stops before its next step

    async def _worth_showing(
        self, context: CompletionContext, snapshot: Snapshot, shown: str = ""
    ) -> Suggestion | None:
        """The text to show at a context's cursor when the user gets there, all context read; None for nothing.

        `shown`: the text on display at the cursor of the snapshot, behind which the context goes on.
        """
        check = partial(_first_error_behind, snapshot, context.offset, shown)
        if (fill := await self._fill_ahead(self._request_ahead(context), context.uri, check)) is None:
            return None
        suggestion = Suggestion.at_cursor(context, postprocess(fill.text, context, snapshot), fill)
        return suggestion if self._why_silent(suggestion, context) is None else None

    def _stop_looking_ahead(self) -> None:
        """Free the engine: requests come first."""
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None

    def _why_silent(self, suggestion: Suggestion, context: CompletionContext) -> str | None:
        sure, is_finished = suggestion.confidence, suggestion.is_finished
        return why_silent(suggestion.text, sure, is_finished, context, self._utility(context.language_id))

    def _utility(self, language: str) -> Utility:
        """When a text in a language is worth showing unasked."""
        model = self._lease.engine.utility if self._lease.engine else Utility()
        return self.price.gate(model, self.settings.eagerness, language)


def _is_allowed(request: SuggestionRequest, settings: Settings) -> bool:
    return settings.allows(request.snapshot.language_id) and (settings.next_edits or not request.is_next_edit)


def _first_error_behind(snapshot: Snapshot, offset: int, shown: str, text: str) -> int | None:
    """As `first_error` for a text behind another one, whose own errors do not count."""
    error = first_error(snapshot, offset, shown + text)
    return None if error is None or error < len(shown) else error - len(shown)


def _on_loop(on_step: OnStep, cancel: Event) -> OnStep:
    """`on_step` for the engine's thread: each call runs on the event loop's thread, until the fill is cancelled."""
    loop = asyncio.get_running_loop()

    def call(slots: tuple[SlotView, ...]) -> None:
        if not cancel.is_set():
            on_step(slots)

    def hand_over(slots: tuple[SlotView, ...]) -> None:
        loop.call_soon_threadsafe(call, slots)

    return hand_over


def _alternatives(suggestions: list[Suggestion]) -> list[Suggestion]:
    """The first suggestion with text, and the confident ones that differ from all before in more than a word."""
    different: list[Suggestion] = []
    for suggestion in suggestions:
        is_sure = not different or suggestion.confidence >= MIN_ALTERNATIVE_CONFIDENCE
        if suggestion.text and is_sure and all(differs(suggestion.text, other.text) for other in different):
            different.append(suggestion)
    return different
