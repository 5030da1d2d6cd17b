"""Remote engines that accept what they are sent and do not answer it, or answer more than was asked for."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mercury_engine.api import Control, Fill, FillRequest, RegionHunk, Rewrite, RewriteRequest, SlotView
from mercury_engine.errors import Cancelled
from mercury_engine.utility import Utility

from mercury_lsp.engine_host.remote import connection as bounds
from mercury_lsp.engine_host.remote import engine as remote_engine
from mercury_lsp.engine_host.remote.answers import MAX_TOKEN_CHARS
from mercury_lsp.engine_host.remote.connection import MAX_MISSED
from mercury_lsp.engine_host.remote.engine import RemoteEngine
from mercury_lsp.plain_data import plain
from tests.support.fake_engine import FakeEngine
from tests.support.fake_remote import ABOUT, FakeRemote, filled, mercury, remote, says

BY_KEY = FillRequest("x = ", suffix=("\n",))

TYPED = replace(BY_KEY, utility=Utility())

LINE = Fill("items[0]", 0.75, 2, 0.01, True, tokens=3)

STEP = {"step": [plain(SlotView("a", "committed", 0.9))]}

FIM = "/v1/fim/completions"

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


class Stuck:
    """A server that describes itself, or answers the probe, and sends `drip` again and again to any other question."""

    def __init__(self, begins: bytes, drip: bytes, describes: bool):
        self._begins, self._drip, self._describes = begins, drip, describes
        self.url, self.asked = "", 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:  # hung up
            head = b""
        if head.startswith(b"GET") and self._describes:
            writer.write(HEAD + json.dumps(ABOUT).encode())
        elif head.startswith(b"POST"):
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if b'"max_tokens": 1,' in await reader.readexactly(length):
                writer.write(HEAD + b'data: {"choices": [{"text": ""}]}\n\n')
            else:
                self.asked += 1
                await self._drop_by_drop(reader, writer)
        elif head:
            await self._drop_by_drop(reader, writer)
        writer.close()

    async def _drop_by_drop(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._begins)
        hung_up = asyncio.gather(reader.read(), return_exceptions=True)
        while not hung_up.done():
            writer.write(self._drip)
            await asyncio.wait((hung_up,), timeout=0.01 if self._drip else None)


@asynccontextmanager
async def stuck(begins: bytes = b"", drip: bytes = b"", describes: bool = True) -> AsyncIterator[Stuck]:
    server = Stuck(begins, drip, describes)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    server.url = f"http://{host}:{port}"
    yield server
    listening.close()


class Clock:
    """Goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


async def typed_on(engine: RemoteEngine, clock: Clock, seconds: float, asked: Callable[[], int]) -> None:
    """A key after this many seconds, which withdraws the question of the one before."""
    before, control = asked(), Control()
    asking = asyncio.ensure_future(engine.answer(TYPED, control))
    await until(lambda: asked() > before)
    clock.now += seconds
    control.cancel.set()
    with pytest.raises(Cancelled):
        await asking


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is late after hundredths of a second."""
    monkeypatch.setattr(bounds, "MIN_SECONDS", 0.05)
    monkeypatch.setattr(bounds, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(remote_engine, "SECONDS", dict.fromkeys(remote_engine.SECONDS, 0.2))


WAYS = {
    "silent": (b"", b""),
    "only a head": (HEAD, b""),
    "drips a head": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    "drips blanks": (HEAD, b" "),
    "drips comments": (HEAD, b": wait\n\n"),
}

WHOLE_WAYS = {"": json.dumps(STEP).encode() + b"\n", FIM: b'data: {"choices": [{"text": "f"}]}\n\n'}
"""By route: an answer that begins and never ends."""


@pytest.mark.parametrize("request_", [TYPED, BY_KEY], ids=["typed", "by key"])
@pytest.mark.parametrize("route", ["", FIM + "#any"], ids=["mercury", "fim"])
@pytest.mark.parametrize("way", [*WAYS, "never ends"])
async def test_the_local_model_answers_the_very_key_that_the_server_does_not(
    soon: None, way: str, route: str, request_: FillRequest
):
    begins, drip = (HEAD, WHOLE_WAYS[route.partition("#")[0]]) if way == "never ends" else WAYS[way]
    async with stuck(begins, drip) as server:
        engine = await remote(server.url + route)
        assert not engine.has_failed
        for _ in range(MAX_MISSED):
            assert (await filled(engine, request_)).text == "local"  # no part of a word that never ends is shown
        assert engine.has_failed and "does not answer" in engine.notice
        assert (await filled(engine, request_)).text == "local" and server.asked <= MAX_MISSED


async def test_keys_that_withdraw_each_other_count_as_misses_together():
    clock = Clock()
    async with stuck() as server:
        engine = await remote(server.url, lambda: FakeEngine("local"), clock)
        while not engine.has_failed:
            await typed_on(engine, clock, 0.35, lambda: server.asked)
        assert server.asked <= 12  # 1.4 seconds of keys for each of three misses
        assert (await filled(engine, TYPED)).text == "local" and "does not answer" in engine.notice


async def test_keys_faster_than_the_server_usually_answers_are_no_misses():
    clock = Clock()
    async with stuck() as server:
        engine = await remote(server.url, lambda: FakeEngine("local"), clock)
        for _ in range(50):
            await typed_on(engine, clock, 0.25, lambda: server.asked)
        assert not engine.has_failed


async def test_at_the_start_a_silent_server_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_engine, "START_SECONDS", 0.05)
    async with stuck(describes=False) as server:
        for route in ("", "/infill", "/v1#any"):
            engine = await remote(f"{server.url}{route}")
            assert engine.has_failed and "took too long" in engine.notice
            assert (await filled(engine, TYPED)).text == "local"


async def test_one_that_describes_itself_and_answers_nothing_is_not_taken_back(
    soon: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote_engine, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(remote_engine, "REPLY_SECONDS", 0.05)
    async with stuck() as server:
        engine = await remote(server.url)
        while not engine.has_failed:
            await filled(engine, TYPED)
        while server.asked < MAX_MISSED + 3:  # tries
            assert (await filled(engine, TYPED)).text == "local" and engine.has_failed
            await asyncio.sleep(0.001)


def dripping(text: str, times: int = 1, **logprobs: Any) -> FakeRemote:
    event = b"data: " + json.dumps({"choices": [{"text": text, **logprobs}]}).encode() + b"\n\n"
    replies = [event * times, b'data: {"choices": [{"text": ""}]}\n\n']
    return FakeRemote({f"POST {FIM}": lambda _: (200, replies.pop())})


ROOM = 7 * MAX_TOKEN_CHARS

SMALL = replace(BY_KEY, max_slots=7, multiline=True)


async def test_an_answer_is_as_long_as_was_asked_for():
    long = "word " * 10_000
    others = tuple(replace(LINE, text=f"{long}{i}") for i in range(9))
    with mercury(replace(LINE, text=long, others=others)) as server:
        found = await filled(await remote(server.url), replace(SMALL, candidates=3))
        assert 0 < len(found.text) <= ROOM and not found.is_finished
        assert len(found.others) == 3 and all(len(each.text) <= ROOM for each in found.others)
    with dripping(long) as server:
        found = await filled(await remote(f"{server.url}{FIM}#any"), SMALL)
        assert 0 < len(found.text) <= ROOM and not found.is_finished
    with dripping("word ", 500, logprobs={"token_logprobs": [-0.01]}) as server:
        found = await filled(await remote(f"{server.url}{FIM}#any"), SMALL)
        assert (found.text, found.tokens) == ("word word word word word word word", 7)


async def test_control_characters_and_halves_of_pairs_go():
    odd, plain = "a\x00b\x1b[31m\r\n\tc\x85\ud800d\ud83d\ude00\x7f", "ab[31m\n\tcd\U0001f600"
    with mercury(replace(LINE, text=odd, unsure_from=4)) as server:
        found = await filled(await remote(server.url), replace(BY_KEY, multiline=True))
        assert (found.text, found.unsure_from) == (plain, 2)
    with dripping(odd, finish_reason="stop") as server:
        assert (await filled(await remote(f"{server.url}{FIM}#any"), replace(BY_KEY, multiline=True))).text == plain


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence": float("nan")},
        {"confidence": 10**400},
        {"confidence": 1.5},
        {"elapsed": float("inf")},
        {"steps": 10**400},
        {"tokens": -1},
    ],
)
async def test_an_answer_with_a_number_out_of_range_is_answered_here(changed: dict[str, Any]):
    with mercury(says({"answer": plain(LINE) | changed})) as server:
        engine = await remote(server.url)
        assert (await filled(engine, TYPED)).text == "local" and "not understood" in engine.notice


async def test_a_rewrite_stays_in_its_region_and_keeps_the_regions_own_characters():
    request = RewriteRequest("a\x0c\nb\n")
    good = Rewrite("a\x0c\nc\x1b\n", 1, 0.1, True, 1, (RegionHunk(1, 2, "\x0cc\x1b\n", 0.5),))
    with mercury(good) as server:
        found = await (await remote(server.url)).answer(request)
        assert found == replace(good, text="a\x0c\nc\n", hunks=(RegionHunk(1, 2, "\x0cc\n", 0.5),))
    for wrong in (RegionHunk(1, 3, "c\n", 0.5), RegionHunk(-1, 1, "", 0.5), RegionHunk(0, 1, "c\n" * 9999, 0.5)):
        with mercury(replace(good, hunks=(wrong,))) as server:
            engine = await remote(server.url)
            await engine.answer(request)
            assert engine.has_failed
