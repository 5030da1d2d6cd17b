"""A remote engine: our own server in this process, and small ones that fail."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_engine.api import (
    Control,
    EditHunk,
    Fill,
    FillRequest,
    GenerateRequest,
    Rewrite,
    RewriteRequest,
    SlotView,
)
from mercury_engine.errors import Cancelled, RequestError
from mercury_engine.utility import Utility
from mercury_lab.engine import Engine

from mercury_lsp.engine_host.remote import engine as remote_engine
from mercury_lsp.engine_host.remote import wire
from mercury_lsp.engine_host.remote.answers import cleaned
from mercury_lsp.engine_host.remote.connection import MAX_REPLY_BYTES
from mercury_lsp.plain_data import plain
from tests.support import tiny
from tests.support.fake_engine import FakeEngine, begun
from tests.support.fake_remote import ABOUT, FakeRemote, Reply, Route, Sent, mercury, remote, says
from tests.support.http_server import Editing, served

FILL = FillRequest(
    "x = é\n",
    far=("# a\n", "\n"),
    suffix=(")\n", ""),
    lookup_text=("y = 1\n", "", "z\ud7ff"),
    multiline=True,
    prose=True,
    max_slots=7,
    effort="low",
    max_steps=3,
    candidates=2,
    unread_limit=128,
    give_up_below=0.25,
    utility=Utility(8.0, 2.5),
    adapter="other",
)

REWRITE = RewriteRequest(
    "a\nb\n", "n\n", ("f\n",), ("s\n",), (EditHunk(3, "a", "b", None),), "p.py", "python", 1, 3, 0.5, 0.75, 900.0
)

LINE = Fill("items[0]", 0.75, 2, 0.5, True, tokens=3, others=(Fill("items", 0.25, 2, 0.5),))


async def test_whole_requests_arrive_and_whole_answers_come_back():
    async with served(Editing()) as server:
        engine = await remote(server.url)
        assert (engine.name, engine.edit_format, engine.utility) == ("fake", "mercury", Utility())
        assert engine.device == f"cpu at {server.url}" and not engine.has_failed
        assert await engine.answer(FILL) == server.engine.fill(FILL)
        assert server.engine.asked == [FILL]
        found = await engine.answer(REWRITE)
        assert isinstance(found, Rewrite) and found.text == REWRITE.text
        [rewrite] = server.engine.regions
        assert replace(rewrite, deadline_ms=900.0) == REWRITE and 450 <= rewrite.deadline_ms <= 900


@tiny.needs_kernels
async def test_a_fill_is_that_of_the_same_model_here_and_so_is_what_its_cache_holds(tmp_path: Path):
    folder = str(tiny.folder(tmp_path, rank=0, **tiny.WIDE))
    before = FillRequest("def area(width):\n    return ", far=("import shapes\n",), suffix=("\n", "print(area(2))\n"))
    after = replace(before, near=before.near + "wi")
    here = await asyncio.to_thread(Engine.load, folder)
    async with served(await asyncio.to_thread(Engine.load, folder)) as server:
        engine = await remote(server.url)
        for request in (before, after):
            there, found = await engine.answer(request), await here.answer(request)
            assert isinstance(found, Fill)
            assert there == replace(found, elapsed=there.elapsed, text=cleaned(found.text))
        assert found.tokens_read < found.prompt_tokens
    here.close()


async def test_steps_are_shown_as_they_come():
    canvas = (SlotView("a", "committed", 0.9), SlotView("", "mask", 0.0))
    seen = []
    async with served() as server:
        server.engine.canvases = (canvas, canvas[:1])
        engine = await remote(server.url)
        await engine.answer(FILL, Control(on_step=seen.append))
        assert seen == [canvas, canvas[:1]]
        await engine.answer(FILL)
        assert server.engine.controls[-1].on_step is None


@pytest.mark.parametrize("how", ["flag", "task"])
async def test_cancelling_hangs_up_and_stops_the_fill_there(how: str):
    async with served() as server:
        engine = await remote(server.url)
        server.engine.held = True
        control = Control()
        asking = asyncio.ensure_future(engine.answer(FILL, control))
        await begun(server.engine)
        if how == "flag":
            control.cancel.set()
        else:
            asking.cancel()
        with pytest.raises(Cancelled if how == "flag" else asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(server.engine.controls[0].cancel.wait, 30)
        assert not engine.has_failed


async def test_at_the_deadline_there_is_an_answer_and_a_server_that_misses_many_is_left_alone():
    timed, edit = replace(FILL, deadline_ms=30.0), replace(REWRITE, deadline_ms=30.0)
    async with served(Editing()) as server:
        engine = await remote(server.url)
        server.engine.held = True
        assert (await engine.answer(timed)).text == ""
        assert (await engine.answer(timed)).text == "" and not engine.has_failed
        assert (await engine.answer(timed)).text == "" and engine.has_failed
        assert "missed 3 deadlines" in engine.notice
        assert (await engine.answer(FILL)).text == "local"
        assert (await engine.answer(edit)) == Rewrite("a\nb\n", 0, pytest.approx(0, abs=60))


async def test_a_server_that_dies_is_replaced_by_the_local_engine_and_tried_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_engine, "RETRY_SECONDS", 0.0)
    loads, told, is_up = [], asyncio.Event(), True

    def load() -> FakeEngine:
        loads.append(1)
        return FakeEngine("local")

    def answer(sent: Sent) -> Reply | None:
        return says({"answer": plain(LINE)})(sent) if is_up else None

    def about(sent: Sent) -> Reply | None:
        return says(ABOUT)(sent) if is_up else None

    with FakeRemote({f"GET {wire.PATH}": about, f"POST {wire.PATH}": answer}) as server:
        engine = await remote(server.url, load)
        engine.watch(told.set)
        assert (await engine.answer(FILL)).text == "items[0]" and loads == []
        is_up = False
        assert (await engine.answer(FILL)).text == "local" and told.is_set()
        assert engine.has_failed and (engine.name, engine.device) == ("fake", "cpu")
        assert f"{server.url} does not answer" in engine.notice
        is_up = True
        while engine.has_failed:
            assert (await engine.answer(FILL)).text == "local"
        assert (await engine.answer(FILL)).text == "items[0]" and loads == [1]
        assert (engine.name, engine.edit_format) == ("elsewhere", "sweep")


@pytest.mark.parametrize(
    "about", [b"<html>", b"[]", b"{}", b"\xff", json.dumps(ABOUT | {"protocol": 99}).encode(), b'{"name": "x"']
)
async def test_what_is_no_mercury_server_is_not_asked(about: bytes):
    with FakeRemote({f"GET {wire.PATH}": lambda _: (200, about)}) as server:
        engine = await remote(server.url)
        assert engine.has_failed and (await engine.answer(FILL)).text == "local"
        assert server.posted(wire.PATH) == []


@pytest.mark.parametrize(
    ("route", "times"),
    [
        (says(status=503), 3),
        (says(status=500), 1),
        (says({"step": []}), 1),
        (says({"step": []}, {"error": {"message": "no memory"}}), 1),
        (says({"answer": {"text": 1}}), 1),
        (lambda _: (200, b"no json"), 1),
        (lambda _: None, 3),
        (lambda _: (200, b" " * (MAX_REPLY_BYTES + 1)), 1),
        (lambda _: (500, b" " * (MAX_REPLY_BYTES + 1)), 1),
    ],
    ids=["busy", "fault", "cut off", "error", "wrong answer", "no json", "hung up", "too long", "too long a fault"],
)
async def test_a_failed_request_is_answered_here_and_sent_no_more_than_this_often(route: Route, times: int):
    with mercury(route) as server:
        engine = await remote(server.url)
        assert (await engine.answer(FILL)).text == "local"
        assert len(server.posted(wire.PATH)) == times and engine.has_failed


async def test_the_key_is_from_the_environment_and_in_no_notice(monkeypatch: pytest.MonkeyPatch):
    key = "0123456789abcdef"
    monkeypatch.setenv("MERCURY_TOKEN", key)
    async with served() as server:
        monkeypatch.setenv("MERCURY_API_KEY", key)
        engine = await remote(server.url)
        assert (await engine.answer(FILL)).text == "suggested"
        monkeypatch.setenv("MERCURY_API_KEY", "another-wrong-key")
        refused = await remote(server.url)
        assert refused.has_failed and "check MERCURY_API_KEY" in refused.notice and "another" not in refused.notice


async def test_text_without_a_gap_is_refused_with_who_writes_it():
    with mercury(LINE) as server:
        engine = await remote(server.url)
        with pytest.raises(RequestError, match="ask its server"):
            await engine.answer(GenerateRequest("x"))
        assert not engine.has_failed


async def test_no_redirect_is_followed():
    with (
        mercury(LINE) as other,
        FakeRemote({f"GET {wire.PATH}": lambda _: (307, f"{other.url}{wire.PATH}".encode())}) as server,
    ):
        engine = await remote(server.url)
        assert engine.has_failed and other.sent == []
