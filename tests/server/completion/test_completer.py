"""The completer, with an engine that answers on demand."""

import asyncio
from threading import Event

import pytest
from mercury_engine.api import Fill, FillRequest
from mercury_engine.errors import Cancelled

from mercury_lsp.completion.completer import Completer
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.settings import Settings
from tests.support.completer_desk import URI, CompleterDesk
from tests.support.fake_engine import FakeEngine, begun


@pytest.fixture
async def editor():
    made = CompleterDesk(FakeEngine(), "x = ")
    await made.completer.load()
    yield made
    made.completer.close()


async def test_newer_request_cancels_older_fill(editor: CompleterDesk):
    editor.engine.held = True
    older = asyncio.ensure_future(editor.ask(4))
    await begun(editor.engine)
    editor.replace(0, 1, "y")
    newer = asyncio.ensure_future(editor.ask(4))
    with pytest.raises(Cancelled):
        await older
    assert editor.engine.controls[0].cancel.is_set()
    await begun(editor.engine)
    editor.engine.held = False
    assert await newer == ["suggested"]


async def test_closing_a_document_stops_its_fill(editor: CompleterDesk):
    editor.engine.held = True
    asked = asyncio.ensure_future(editor.ask(4))
    await begun(editor.engine)
    editor.completer.forget(URI)
    with pytest.raises(Cancelled):
        await asked


async def test_requests_wait_for_the_model_and_the_newest_gets_it():
    editor = CompleterDesk(FakeEngine(), "x = ")
    older = asyncio.ensure_future(editor.ask(3))
    await asyncio.sleep(0)
    newer = asyncio.ensure_future(editor.ask(4))
    with pytest.raises(Cancelled):
        await older
    await editor.completer.load()
    assert await newer == ["suggested"]
    assert len(editor.engine.asked) == 1


async def test_without_an_engine_nothing_is_suggested():
    def fail(settings: Settings) -> FakeEngine:
        raise RuntimeError("no")

    editor = CompleterDesk(FakeEngine(), "x = ")
    editor.completer = Completer(Engines(fail))
    with pytest.raises(RuntimeError):
        await editor.completer.load()
    assert await editor.ask(4) == []


async def test_what_is_not_worth_showing_is_shown_only_when_invoked(editor: CompleterDesk):
    editor.engine.confidence = 0.2
    assert await editor.ask(4, automatic=True) == []
    assert await editor.ask(4, automatic=False) == ["suggested"]


async def test_an_eager_user_sees_what_others_do_not(editor: CompleterDesk):
    editor.engine.confidence = 0.45
    shown = []
    for eagerness in ("low", "medium", "high"):
        editor.completer.settings = Settings(eagerness=eagerness)
        editor.replace(0, 1, "y")  # else the last suggestion is shown on
        shown.append(await editor.ask(4))
    assert shown == [[], [], ["suggested"]]


async def test_a_disabled_language_asks_no_model(editor: CompleterDesk):
    editor.completer.settings = Settings(disabled_languages=("python",))
    assert await editor.ask(4, automatic=False) == []
    assert editor.engine.asked == []


async def test_typing_through_needs_no_model_and_deleting_restores_the_suggestion(editor: CompleterDesk):
    await editor.ask(4)
    editor.replace(4, 4, "sug")
    assert await editor.ask(7) == ["gested"]
    editor.replace(5, 7, "")
    assert await editor.ask(5) == ["uggested"]
    editor.replace(4, 5, "")
    assert await editor.ask(4) == ["suggested"]
    assert len(editor.engine.asked) == 1


async def test_text_typed_while_the_model_works_counts_as_typed_through(editor: CompleterDesk):
    editor.engine.held = True
    asked = asyncio.ensure_future(editor.ask(4))
    await begun(editor.engine)
    editor.replace(4, 4, "su")
    editor.engine.held = False
    assert await asked == ["suggested"]
    assert await editor.ask(6) == ["ggested"]
    assert len(editor.engine.asked) == 1


@pytest.mark.parametrize(
    ("edit", "column"),
    [((4, 4, "other"), 9), ((0, 1, "y"), 4), ((4, 4, "suggested"), 13)],
    ids=["other text typed", "text before the cursor changed", "typed to its end"],
)
async def test_any_other_edit_calls_the_model_again(editor: CompleterDesk, edit: tuple[int, int, str], column: int):
    await editor.ask(4)
    editor.replace(*edit)
    await editor.ask(column)
    assert len(editor.engine.asked) == 2


async def test_what_was_typed_against_is_not_shown_again_at_that_place(editor: CompleterDesk):
    assert await editor.ask(4) == ["suggested"]
    editor.replace(4, 4, "oth")
    editor.replace(4, 7, "")
    assert await editor.ask(4) == []
    assert "typed something else" in (editor.completer.silences[URI])
    assert await editor.ask(4, automatic=False) == ["suggested"]


async def test_after_three_refusals_less_is_shown(editor: CompleterDesk):
    editor.engine.confidence = 0.7
    for number, word in enumerate(("first", "second", "third")):
        editor.engine.text = word
        assert await editor.ask(4) == [word]
        editor.replace(4, 4, "#" * 3)
        editor.replace(0, 7, f"{number} = ")
    editor.engine.text = "fourth"
    assert await editor.ask(4) == []
    assert "typed against several" in (editor.completer.silences[URI])


async def test_text_just_deleted_is_not_offered_again(editor: CompleterDesk):
    editor.replace(4, 4, "suggested")
    for end in range(13, 4, -1):
        editor.replace(end - 1, end, "")
    assert await editor.ask(4) == []


async def test_unsure_alternatives_are_left_out(editor: CompleterDesk):
    def fill(request: FillRequest) -> Fill:
        others = [Fill(text, sure, steps=2, elapsed=0.0) for text, sure in (("two + 2", 0.06), ("three + 3", 0.04))]
        return Fill("one", editor.engine.confidence, steps=2, elapsed=0.0, others=tuple(others))

    editor.engine.fill = fill
    assert await editor.ask(4, automatic=False) == ["one", "two + 2"]
    editor.engine.confidence = 0.03
    assert (await editor.ask(4, automatic=False))[0] == "one", "the first is what was asked for"


async def test_an_accepted_suggestion_that_is_deleted_is_not_offered_again(editor: CompleterDesk):
    await editor.ask(4)
    editor.replace(4, 4, "suggested")
    editor.replace(4, 13, "")
    assert await editor.ask(4) == []


async def test_only_a_model_that_was_trained_to_edit_rewrites_places():
    engine = FakeEngine()
    editor = CompleterDesk(engine, "x = 1\n")
    await editor.completer.load()
    assert editor.completer.next_edits.regions.rewrite is None
    engine.edit_format = "sweep"
    editor = CompleterDesk(engine, "x = 1\n")
    await editor.completer.load()
    assert (rewrite := editor.completer.next_edits.regions.rewrite) is not None
    place = Place(editor.documents.snapshot(URI), "sample.py", 0, 0, 1)
    assert await rewrite(place, (), 0.4, Event()) == []  # the fake leaves every region as it is
