"""Which requests run side by side, which are superseded, and which share a fill."""

import asyncio

import pytest
from mercury_engine.errors import Cancelled

from mercury_lsp.completion.coalescing import Coalescer, Feature, SuggestionRequest
from mercury_lsp.completion.suggestions import Suggestion
from tests.support.completer_desk import URI, CompleterDesk
from tests.support.fake_engine import FakeEngine, begun

EVERY_FEATURE: list[Feature] = ["inline", "popup", "edit", "action"]


@pytest.fixture
async def editor():
    made = CompleterDesk(FakeEngine(), "x = ")
    await made.completer.load()
    made.engine.held = True
    yield made
    made.completer.close()


async def start_request(
    editor: CompleterDesk, feature: Feature = "inline", column: int = 4, invoked: bool = False
) -> asyncio.Task:
    """A request whose fill is under way or queued."""
    task = asyncio.ensure_future(editor.ask(column, automatic=not invoked, feature=feature))
    await asyncio.sleep(0)
    return task


async def answers(editor: CompleterDesk, *asked: asyncio.Task) -> list[list[str]]:
    editor.engine.held = False
    return await asyncio.gather(*asked)


async def is_cancelled(asked: asyncio.Task) -> bool:
    with pytest.raises(Cancelled):
        await asked
    return True


async def test_features_that_ask_at_one_cursor_share_a_fill(editor: CompleterDesk):
    asked = [await start_request(editor, feature) for feature in EVERY_FEATURE]
    assert await answers(editor, *asked) == [["suggested"]] * len(EVERY_FEATURE)
    assert len(editor.engine.asked) == 1


async def test_a_shared_fill_runs_while_any_feature_waits_for_it(editor: CompleterDesk):
    asked = [await start_request(editor, feature) for feature in ("inline", "popup")]
    await begun(editor.engine)
    asked[0].cancel()
    await asyncio.sleep(0.02)
    [control] = editor.engine.controls
    assert not control.cancel.is_set()
    asked[1].cancel()
    await asyncio.wait(asked)
    assert control.cancel.is_set()


async def test_typing_supersedes_the_older_requests_of_every_feature(editor: CompleterDesk):
    older = [await start_request(editor, feature) for feature in ("inline", "popup", "edit")]
    editor.replace(0, 1, "y")
    newer = await start_request(editor, "popup")
    assert all([await is_cancelled(each) for each in older])
    assert await answers(editor, newer) == [["suggested"]]


@pytest.mark.parametrize("feature", EVERY_FEATURE)
async def test_an_invoked_request_outlives_automatic_ones(editor: CompleterDesk, feature: Feature):
    invoked = await start_request(editor, feature, invoked=True)
    automatic = await start_request(editor, "inline")
    assert await answers(editor, invoked, automatic) == [["suggested"], ["suggested"]]
    assert [request.candidates for request in editor.engine.asked] == [3], "the answer by key serves both"


async def test_closing_a_document_cancels_all_its_requests(editor: CompleterDesk):
    asked = [await start_request(editor, "inline"), await start_request(editor, "action", invoked=True)]
    editor.completer.forget(URI)
    assert all([await is_cancelled(each) for each in asked])


async def test_a_request_that_is_replaced_in_the_turn_of_its_answer_is_cancelled_quietly(editor: CompleterDesk):
    errors: list[object] = []
    loop, coalescer, snapshot = asyncio.get_running_loop(), Coalescer(), editor.documents.snapshot(URI)
    loop.set_exception_handler(lambda _, context: errors.append(context))
    found = loop.create_future()
    asked = asyncio.ensure_future(coalescer.answer(SuggestionRequest("inline", snapshot, 4), lambda _: wait(found)))
    await asyncio.sleep(0.01)
    found.set_result([])
    await asyncio.sleep(0)
    coalescer.cancel_where(lambda _: True)
    assert await is_cancelled(asked) and errors == []


async def wait(found: asyncio.Future) -> list[Suggestion]:
    return await found
