"""A model of edits on a server, asked over the routes of OpenAI's API and of Inception's."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing
from difflib import SequenceMatcher
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mercury_engine.api import Answer, Control, RegionHunk, Request, Rewrite, RewriteRequest
from mercury_engine.errors import Cancelled, ModelError, RequestError
from mercury_engine.prompt.edit_families import FAMILIES, Family, family_of, new_text
from mercury_engine.text.lines import lines_of
from mercury_engine.utility import Utility

from mercury_lsp.engine_host.remote.answers import Told, cleaned
from mercury_lsp.engine_host.remote.connection import (
    MAX_MISSED,
    Connection,
    Patience,
    RemoteError,
    located,
    unless_cancelled,
)
from mercury_lsp.settings import is_loopback

KEY_VARIABLE = "MERCURY_EDIT_API_KEY"
"""Read from the environment only; not the key of the engine for fills, which is another server's."""

ROUTES = ("/v1/edit/completions", "/v1/chat/completions", "/v1/completions")

UNTOLD = 1.0
"""Assumed probability of an edit without one: the model was trained to say "no change"."""

PAUSE_SECONDS = 0.25
"""Without a key before another machine is asked, as some servers charge by request."""

ANSWER_SECONDS = 5.0
"""Longest wait for an edit; the user has looked elsewhere by then."""

LIST_SECONDS = 3.0
"""Longest wait for the list of a server's models."""

MAX_TOKENS = 2048


class RemoteEdits:
    """Asks the server at a URL for rewritten windows, at most so many times a minute."""

    chat_format = words = None
    backend = "remote"
    utility = Utility()

    def __init__(self, url: str, requests_per_minute: int, clock: Callable[[], float] = monotonic):
        """Asks the server for its models if the URL names none. Raises ModelError for an unknown family."""
        self.url, self.name, self._clock = url.partition("#")[0], urlsplit(url).fragment, clock
        base, route = located(url, ROUTES)
        self._connection = Connection(base, KEY_VARIABLE)
        if not self.name:
            self.name = "mercury-edit" if route == ROUTES[0] else asyncio.run(self._first_model())
        self.family = _known(self.name, parse_qs(urlsplit(url).query).get("format", [""])[0])
        self.device, self.edit_format = f"remote at {self.url}", self.family.name
        goes = f" at {self.url}" if is_loopback(self.url) else f": the text around the cursor goes to {self.url}"
        self.notice = f"next edits by {self.name}{goes}"
        """Tells users where their text goes."""
        self._route = route or _route_of(self.family)
        self._limit = None if is_loopback(base) else requests_per_minute
        self._asked: deque[float] = deque(maxlen=requests_per_minute)
        """Times of the last requests."""
        self.requests = self._counted = 0
        """Requests sent, and those already counted by a connection that shares the engine."""
        self._patience = Patience(ANSWER_SECONDS)
        self._asks_probabilities = self._route != ROUTES[0]

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own server, where requests cost nothing: no API, and no key is sent to it."""
        return self._limit is None or (self._route != ROUTES[0] and KEY_VARIABLE not in os.environ)

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """The rewrite; the unchanged region if none comes in time. Cancelling hangs up.

        Raises Cancelled, RequestError, and RemoteError if the server is of no use.
        """
        if not isinstance(request, RewriteRequest) or request.cursor is None:
            raise RequestError("this server only makes edits around a cursor")
        began, window = self._clock(), self.family.clean(request)
        control = control or Control()
        if self._limit is not None:  # another key may cancel it before it is sent to another machine
            await asyncio.sleep(PAUSE_SECONDS)
        if control.cancel.is_set():
            raise Cancelled("cancelled before the server was asked for an edit")
        written = text = None
        if window is not None and self._may_ask(self._clock()):
            written = await self._written(window, control, request.deadline_ms)
            text = None if written is None else new_text(self.family, window, written[0])
        elapsed = self._clock() - began
        if written is None or text is None:
            return Rewrite(request.text, 0, elapsed)
        hunks = _hunks(lines_of(request.text), lines_of(text), written[1])
        return Rewrite(text, 1, elapsed, True, hunks=hunks)

    def uncounted(self) -> int:
        """Number of requests sent since the last call."""
        found, self._counted = self.requests - self._counted, self.requests
        return found

    def rest(self) -> None: ...

    def close(self) -> None:
        self._connection.close()

    def _may_ask(self, now: float) -> bool:
        """Whether another request is within the limit, and counts it."""
        if self._limit is not None:
            if len(self._asked) == self._limit and now - self._asked[0] < 60.0:
                return False
            self._asked.append(now)
        self.requests += 1
        return True

    async def _written(
        self, window: RewriteRequest, control: Control, deadline_ms: float | None
    ) -> tuple[str, Told | None] | None:
        """The model's text and its probabilities, if any; None if it is late or was cut off. Raises as `answer`."""
        seconds = ANSWER_SECONDS if deadline_ms is None else min(ANSWER_SECONDS, deadline_ms / 1000)
        try:
            reply = await unless_cancelled(self._reply(window), control, seconds)
        except TimeoutError:
            self._patience.missed()
            if not self._patience.is_over:
                return None
            self._patience.renew()
            raise RemoteError(f"{self.url} missed {MAX_MISSED} deadlines") from None
        self._patience.renew()
        return _text_of(reply)

    async def _reply(self, window: RewriteRequest) -> Any:
        """The reply; a server that refuses to report probabilities is asked without them from then on."""
        if self._asks_probabilities:
            try:
                body = self._body(window) | {"logprobs": True if self.family.is_chat else 1}
                return await self._connection.json(self._route, body)
            except RequestError:
                self._asks_probabilities = False
                self.requests += 1
        return await self._connection.json(self._route, self._body(window))

    def _body(self, window: RewriteRequest) -> dict[str, Any]:
        prompt = self.family.prompt(window)
        message = {"model": self.name, "messages": [{"role": "user", "content": prompt}], "stream": False}
        if self._route == ROUTES[0]:
            return message
        limits = {"temperature": 0, "max_tokens": min(MAX_TOKENS, len(window.text) // 2 + 256), "n": 1, "stream": False}
        if self.family.is_chat:
            return message | limits
        return {"model": self.name, "prompt": prompt, "stop": list(self.family.stop), "echo": False} | limits

    async def _first_model(self) -> str:
        """As `Connection.first_model`; hangs up."""
        try:
            async with asyncio.timeout(LIST_SECONDS), aclosing(self._connection):
                return await self._connection.first_model()
        except TimeoutError:
            raise RemoteError(f"{self.url} does not list its models") from None


def _known(model: str, named: str) -> Family:
    """A model's family. Raises ModelError with the list of all."""
    if (found := family_of(model, named)) is None:
        names = ", ".join(each.name for each in FAMILIES)
        what = f"the format {named}" if named else f"the model {model or 'without a name'}"
        raise ModelError(f"{what} belongs to no known family; add ?format= before the # of its URL: {names}")
    return found


def _route_of(family: Family) -> str:
    return ROUTES[0] if family.name == "mercury-edit" else ROUTES[1] if family.is_chat else ROUTES[2]


def _text_of(reply: Any) -> tuple[str, Told | None] | None:
    """The text of a reply, and what it tells of its tokens; None if it was cut off. Raises RemoteError."""
    match reply:
        case {"choices": [{"finish_reason": "length"}, *_]}:
            return None
        case {"choices": [{"text": str(text)}, *_]} | {"choices": [{"message": {"content": str(text)}}, *_]}:
            plain = cleaned(text.replace("\r\n", "\n"))
            return plain, Told.of(reply, text) if plain == text else None
    raise RemoteError("its reply has no text")


def _hunks(old: Sequence[str], new: Sequence[str], told: Told | None) -> tuple[RegionHunk, ...]:
    places = {} if told is None else told.of_lines(new)
    found = []
    for kind, first, end, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            text = "".join(new[start:stop])
            sure = UNTOLD if told is None else told.of_change("".join(old[first:end]), text, places.get(start))
            found.append(RegionHunk(first, end, text, sure))
    return tuple(found)
