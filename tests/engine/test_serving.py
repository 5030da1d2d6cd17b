"""The thread on which an engine answers event loops."""

import asyncio
from threading import Event

import pytest
from mercury_engine.api import Control, Fill, FillRequest
from mercury_engine.errors import Cancelled
from mercury_engine.scheduler import Scheduler
from mercury_engine.serving import Serving

from tests.support import tiny

REQUEST = FillRequest(near="x = ", suffix=("\n",), max_slots=4)


def echoed(more):
    """Answers with the near prefix, and takes up whatever came meanwhile."""
    while requests := [*more()]:
        for request, _, tell in requests:
            tell(Fill(request.near, 1.0, steps=1, elapsed=0.0))


@pytest.fixture
def serving():
    made = Serving(echoed)
    yield made
    made.close()


async def test_an_engine_answers_on_its_thread_what_it_answers_a_script(tmp_path):
    engine = tiny.load(tiny.folder(tmp_path, rank=0))
    answer = await engine.answer(REQUEST)
    engine.close()
    assert isinstance(answer, Fill) and answer.text == engine.fill(REQUEST).text


async def test_requests_that_are_there_together_are_answered_together():
    batches, go = [], Event()

    def together(more):
        go.wait(10)
        batches.append([*more()])
        for request, _, tell in batches[-1]:
            tell(Fill(request.near, 1.0, steps=1, elapsed=0.0))

    serving = Serving(together)
    asked = [asyncio.ensure_future(serving.answer(FillRequest(near=text), Control())) for text in "abc"]
    await asyncio.sleep(0)
    go.set()
    assert [answer.text for answer in await asyncio.gather(*asked)] == ["a", "b", "c"]
    assert [len(batch) for batch in batches if batch] == [3]
    serving.close()


async def test_a_callers_cancelled_task_sets_the_flag():
    control, begun, over = Control(), Event(), Event()

    def waiting(more):
        for _, _, tell in more():
            begun.set()
            over.wait(10)
            tell(Cancelled("cancelled"))

    serving = Serving(waiting)
    asked = asyncio.ensure_future(serving.answer(REQUEST, control))
    assert await asyncio.to_thread(begun.wait, 10)
    asked.cancel()
    await asyncio.wait([asked])
    assert control.cancel.is_set()
    over.set()
    serving.close()


@pytest.mark.parametrize("raised", [RuntimeError("broken"), SystemExit(1)])
async def test_what_fails_as_a_whole_fails_its_requests_and_is_used_again(raised):
    broken = [raised]

    def steps(request, control):
        if broken:
            raise broken.pop()
        yield from ()
        return Fill(request.near, 1.0, steps=1, elapsed=0.0)

    serving = Serving(Scheduler(None, steps).answer_all)
    with pytest.raises(RuntimeError, match="broken|SystemExit"):
        await serving.answer(REQUEST, Control())
    assert (await serving.answer(REQUEST, Control())).text == REQUEST.near
    serving.close()


async def test_a_closed_engine_answers_what_had_begun_and_nothing_more(serving):
    asked = asyncio.ensure_future(serving.answer(REQUEST, Control()))
    await asyncio.sleep(0)
    serving.close()
    assert (await asked).text == REQUEST.near
    with pytest.raises(Cancelled):
        await serving.answer(REQUEST, Control())


async def test_a_request_that_comes_just_as_the_engine_is_closed_is_cancelled(monkeypatch):
    serving, loop = Serving(echoed), asyncio.get_running_loop()

    def close_first():
        monkeypatch.undo()
        serving.close()
        return loop

    asked = asyncio.ensure_future(serving.answer(REQUEST, Control()))
    monkeypatch.setattr("mercury_engine.serving.asyncio.get_running_loop", close_first)
    await asyncio.wait([asked], timeout=10)
    assert isinstance(asked.exception(), Cancelled)
