"""The dialects of servers: our own takes whole requests, others fill-in-the-middle.

Those get the text on both sides of the gap and write up to the end of a line or paragraph. They neither rewrite regions
nor see lookup text, drafts and utility.
"""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from math import exp
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from mercury_engine.api import Control, Fill, FillRequest, Rewrite, SlotView
from mercury_engine.decoding.truncation import truncated
from mercury_engine.errors import RequestError
from mercury_engine.prompt.gap_format import FORMATS, GapFormat

from mercury_lsp.engine_host.remote import wire
from mercury_lsp.engine_host.remote.answers import (
    bounded,
    cleaned,
    label,
    log_probabilities,
    max_chars,
    shown_slots,
    slots_of,
)
from mercury_lsp.engine_host.remote.connection import (
    REPLY_SECONDS,
    Connection,
    NoSuchRoute,
    RemoteError,
    located,
    parsed,
)
from mercury_lsp.engine_host.remote.wire import Answer, Request
from mercury_lsp.plain_data import plain, structured

ROUTES = ("/infill", "/v1/fim/completions", "/v1/completions")
"""Fill-in-the-middle of llama-server, Mercury's API and OpenAI's; tried in this order."""

MARKED = {"qwen": "qwen2.5-coder", "granite": "granite-4", "starcoder": "starcoder", "deepseek": "deepseek-coder"}
"""Families by a part of models' names, for servers that take no suffix, as vLLM's: their markers are one token each."""

UNKNOWN_CONFIDENCE = 0.8
"""For servers that report no probabilities: all but stubs are shown then. Assumed, not measured."""

SPARE_SECONDS = 0.02
"""Part of the deadline kept for postprocessing."""

PROBE = FillRequest("x = ", suffix=("\n",), max_slots=1)
"""Tests a route without the user's text."""


@dataclass(slots=True)
class Waiting:
    """A question as its asker sees it."""

    seconds: float
    """Time for the whole answer."""
    has_begun: bool = False
    """Whether a part of the answer has come."""


class MercuryDialect:
    """Our own server's: whole requests, so its caches and next edits are those of an engine in this process."""

    async def about(self, connection: Connection) -> wire.About:
        """The engine's description. Raises NoSuchRoute from another server, and RemoteError."""
        try:
            found = structured(await connection.json(wire.PATH), wire.About)
        except ValueError as error:
            raise NoSuchRoute(f"it is not a Mercury server: {error}") from None
        if found.protocol != wire.PROTOCOL:
            raise RemoteError("it runs another version of Mercury; install the same version on both sides")
        return replace(found, name=label(found.name), device=label(found.device), backend=label(found.backend))

    async def answer(self, connection: Connection, request: Request, control: Control, waiting: Waiting) -> Answer:
        """The answer. Raises RemoteError and RequestError."""
        by_key = isinstance(request, FillRequest) and request.utility is None and request.max_steps != 0
        shows = control.on_step is not None or by_key  # a long fill shows early that it has begun
        is_fill = isinstance(request, FillRequest)
        body = {"fill" if is_fill else "rewrite": plain(request), "steps": shows}
        async with aclosing(connection.lines(wire.PATH, body)) as lines:
            async for line in lines:
                match parsed(line):
                    case {"step": step}:
                        with _understood():
                            canvas = tuple(structured(each, SlotView) for each in step)
                        waiting.has_begun = True
                        if control.on_step is not None:
                            control.on_step(shown_slots(canvas))
                    case {"answer": found}:
                        with _understood():
                            return bounded(structured(found, Fill) if is_fill else structured(found, Rewrite), request)
                    case {"error": {"message": str(said)}}:
                        raise RemoteError(label(said))
        raise RemoteError("its reply ended before the answer")


@dataclass(frozen=True, slots=True)
class FimDialect:
    """One of `ROUTES`."""

    route: str
    model: str
    markers: GapFormat | None = None
    """Written into the prompt where the server takes no suffix."""

    async def answer(self, connection: Connection, request: Request, control: Control, waiting: Waiting) -> Answer:
        """As `MercuryDialect` has it; shortly before the time is up the text so far, or TimeoutError without any."""
        if not isinstance(request, FillRequest):
            raise RequestError("this server only fills gaps")
        began, text, nats, is_finished = perf_counter(), "", list[float](), False
        body = self._body(request)
        if body is None:
            return Fill("", 0.0, 0, 0.0)
        limit, is_late = max(0.0, waiting.seconds - SPARE_SECONDS), False
        slots, room = slots_of(request), max_chars(request)
        try:
            async with asyncio.timeout(limit), aclosing(connection.events(self.route, body)) as events:
                async for event in events:
                    with _understood():
                        piece, more, end = _piece(event)
                    waiting.has_begun = waiting.has_begun or bool(piece)
                    before, text, is_finished = text, text + piece, is_finished or end
                    nats += more if piece else ()
                    if len(nats) > slots or len(text) > room:
                        text, nats, is_finished = (before or text)[:room], nats[:slots], False
                        break
        except TimeoutError:
            is_late = True
        text = cleaned(text)
        if not request.multiline and "\n" in text:
            text, is_finished = text[: text.index("\n")], True
        shown = text.rstrip() if is_finished else truncated(text, None)
        if is_late and not shown:
            raise TimeoutError
        confidence = exp(sum(nats)) if nats else UNKNOWN_CONFIDENCE
        return Fill(shown, confidence, len(nats), perf_counter() - began, is_finished, tokens=len(nats))

    def _body(self, request: FillRequest) -> dict[str, Any] | None:
        """What is sent; None if there is nothing to ask."""
        before, after = "".join((*request.far, request.near)), "".join(request.suffix)
        tokens = slots_of(request)
        shared: dict[str, Any] = {"stop": ["\n\n" if request.multiline else "\n"], "stream": True}
        if self.route == "/infill":
            timed = {} if request.deadline_ms is None else {"t_max_predict_ms": request.deadline_ms}
            gap = {"input_prefix": before, "input_suffix": after, "prompt": "", "n_predict": tokens}
            return gap | shared | timed | {"temperature": 0.0, "n_probs": 1, "cache_prompt": True}
        if not tokens:
            return None  # these servers read nothing ahead
        asked = {"model": self.model, "max_tokens": tokens} | shared
        if self.route == "/v1/fim/completions":  # Mercury penalises repeats by default, which code is full of
            likeliest = {"presence_penalty": 0.0} if self.model.startswith("mercury") else {"temperature": 0.0}
            return asked | {"prompt": before, "suffix": after} | likeliest
        asked |= {"temperature": 0.0, "logprobs": 1}
        if self.markers is None:
            return asked | {"prompt": before, "suffix": after}
        marks = self.markers
        if any(mark in before + after for mark in (marks.prefix, marks.suffix, marks.middle)):
            return None  # the document would write the prompt
        return asked | {"prompt": f"{marks.prefix}{before}{marks.suffix}{after}{marks.middle}"}


Dialect = MercuryDialect | FimDialect
"""A way to ask a server."""


def parts_of(url: str) -> tuple[str, str | None, str]:
    """An engine's URL: the server, the route if it names one, and the model after `#` or ""."""
    return *located(url, (wire.PATH, *ROUTES)), urlsplit(url).fragment


async def detected(connection: Connection, route: str | None, model: str) -> tuple[Dialect, wire.About]:
    """What the server understands, asked of it unless the route says so. Raises RemoteError and RequestError."""
    refused = NoSuchRoute("it offers neither Mercury's API nor fill-in-the-middle")
    if route in (None, wire.PATH):
        try:
            mercury = MercuryDialect()
            return mercury, await mercury.about(connection)
        except NoSuchRoute as error:
            if route is not None:
                raise
            refused = error
    model = model or await connection.first_model()
    for each in ROUTES if route is None else (route,):
        dialect = FimDialect(each, model)
        try:
            await dialect.answer(connection, PROBE, Control(), Waiting(REPLY_SECONDS))
        except NoSuchRoute as error:
            refused = error
            continue
        except RequestError as error:
            family = next((family for part, family in MARKED.items() if part in model.lower()), None)
            if "suffix" not in str(error) or family is None:
                raise
            dialect = replace(dialect, markers=next(marks for marks in FORMATS if marks.family == family))
        return dialect, wire.About(model or "remote", backend=each)
    raise refused


def _piece(body: Any) -> tuple[str, list[float], bool]:
    """An event's text, the log-probabilities of its tokens, and whether the text ends where the gap does."""
    match body:
        case {"content": str(text)}:
            return text, log_probabilities(body), bool(body.get("stop")) and body.get("stop_type") in ("eos", "word")
        case {"choices": [dict() as choice, *_]}:
            text = choice.get("text") or (choice.get("delta") or choice.get("message") or {}).get("content") or ""
            return str(text), log_probabilities(body), choice.get("finish_reason") == "stop"
        case {"choices": []}:
            return "", [], False
    raise ValueError("it has no text")


@contextmanager
def _understood() -> Iterator[None]:
    """Turn what reading an unexpected reply raises into RemoteError."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise RemoteError(label(f"its reply was not understood: {error}")) from None
