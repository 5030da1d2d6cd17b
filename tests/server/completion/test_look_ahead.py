"""While the engine is idle, the suggestion after the one on display is prepared."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from mercury_engine.api import Fill

from mercury_lsp.completion import completer
from mercury_lsp.settings import Settings
from tests.support.completer_desk import CompleterDesk
from tests.support.fake_engine import FakeEngine, begun


class Counting(FakeEngine):
    """Fills `one`, then ` two` after it."""

    def fill(self, request):
        text = " two" if request.near.endswith("one") else "one"
        others = (Fill("uno + dos", 0.8, steps=2, elapsed=0.0),) if request.candidates > 1 else ()
        return Fill(text, self.confidence, steps=2, elapsed=0.01, is_finished=True, others=others)


@asynccontextmanager
async def desk_of(engine: FakeEngine, text: str = "x = ") -> AsyncIterator[CompleterDesk]:
    made = CompleterDesk(engine, text)
    await made.completer.load()
    yield made
    made.completer.close()


@pytest.fixture
async def editor(monkeypatch):
    monkeypatch.setattr(completer, "LOOK_AHEAD_AFTER_SECONDS", 0.01)
    async with desk_of(Counting()) as made:
        yield made


async def looked_ahead(editor: CompleterDesk) -> None:
    while isinstance(editor.completer._ahead, asyncio.TimerHandle):
        await asyncio.sleep(0.001)
    assert editor.completer._ahead is not None
    await editor.completer._ahead


async def test_after_an_accept_the_next_suggestion_is_there_without_the_model(editor):
    assert await editor.ask(4) == ["one"]
    await looked_ahead(editor)
    assert [request.near for request in editor.engine.asked] == ["x = ", "x = one"]
    editor.replace(4, 4, "one")
    assert await editor.ask(7) == [" two"]
    assert len(editor.engine.asked) == 2


class Foreseeing(Counting):
    """Knows which keys may come."""

    def fill(self, request):
        return replace(super().fill(request), next_characters=("(", "o", "[") if request.foresees else ())


async def test_likely_keys_are_prepared_before_what_follows_the_suggestion(editor, monkeypatch):
    monkeypatch.setattr(completer, "PREPARE_KEYS_AFTER_SECONDS", 0.0)
    async with desk_of(Foreseeing()) as desk:
        assert await desk.ask(4) == ["one"]
        await looked_ahead(desk)
        assert desk.engine.asked_near == ["x = ", "x = (", "x = [", "x = one"], "the user may type through the o"


class Lines(FakeEngine):
    """Fills a line, then the next one where it may."""

    is_finished, next_line = True, "\ny = two"

    def fill(self, request):
        follows = self.next_line if request.multiline else ""
        text = follows if request.near.endswith(("one", "two")) else "one"
        return Fill(text, self.confidence, steps=2, elapsed=0.01, is_finished=self.is_finished)


@pytest.fixture
async def lines(monkeypatch):
    monkeypatch.setattr(completer, "LOOK_AHEAD_AFTER_SECONDS", 0.01)
    async with desk_of(Lines()) as made:
        yield made


async def test_after_an_accepted_line_the_next_one_is_there(lines):
    assert await lines.ask(4) == ["one"]
    await looked_ahead(lines)
    lines.replace(4, 4, "one")
    assert await lines.ask(7) == ["\ny = two"]
    assert len(lines.engine.asked) == 2


async def test_one_line_follows_another_as_long_as_they_are_accepted(lines):
    await lines.ask(4)
    await looked_ahead(lines)
    lines.replace(4, 4, "one")
    assert await lines.ask(7) == ["\ny = two"]
    lines.replace(7, 7, "\ny = two")
    assert await lines.ask(7, line=1) == ["\ny = two"]
    assert len(lines.engine.asked) == 3


async def test_an_edit_ends_the_offer_of_the_next_line(lines):
    await lines.ask(4)
    lines.replace(4, 4, "one")
    await lines.ask(7)
    lines.replace(0, 1, "z")
    await lines.ask(7)
    assert not lines.engine.asked[-1].multiline


@pytest.mark.parametrize(("text", "offset"), [("x = + 3", 4), ("# x = ", 6), ('x = """', 7)])
async def test_within_a_line_a_comment_or_a_string_no_line_follows(text, offset):
    async with desk_of(Lines(), text) as desk:
        assert await desk.ask(offset) == ["one"]
        desk.replace(offset, offset, "one")
        await desk.ask(offset + 3)
        assert not any(request.multiline for request in desk.engine.asked)


async def test_by_key_the_next_line_is_offered_at_the_end_of_any_line_to_which_nothing_can_be_added():
    async with desk_of(Lines(), "x = one") as desk:
        assert await desk.ask(7) == []
        assert await desk.ask(7, automatic=False) == ["\ny = two"]
        assert [request.multiline for request in desk.engine.asked] == [False, False, True]


async def test_a_request_stops_looking_ahead(editor):
    await editor.ask(4)
    editor.engine.begun.clear()
    editor.engine.held = True
    await begun(editor.engine)
    ahead = editor.engine.controls[-1]
    asked = asyncio.ensure_future(editor.ask(4, automatic=False))
    await begun(editor.engine)
    assert ahead.cancel.is_set()
    editor.engine.held = False
    assert (await asked)[0] == "one"


class Unread(Counting):
    """Has read the context once it was asked without a limit."""

    read = False

    def fill(self, request):
        self.read |= request.unread_limit is None
        return replace(super().fill(request), tokens_unread=0 if self.read else 900)


@pytest.fixture
async def stranger(monkeypatch):
    monkeypatch.setattr(completer, "READ_ON_AFTER_SECONDS", 0.01)
    async with desk_of(Unread()) as made:
        yield made


async def test_the_context_left_out_of_the_first_suggestion_is_read_in_the_pause_behind_it(stranger):
    assert await stranger.ask(4) == ["one"]
    await looked_ahead(stranger)
    first, reading, ahead = stranger.engine.asked
    assert (first.unread_limit, first.max_steps) == (completer.FIRST_READ_TOKENS, None)
    assert (reading.unread_limit, reading.near) == (None, "x = ")
    assert ahead.near == "x = one"


class ChangingItsMind(Unread):
    """Fills another text once it has read all of the context."""

    later = "one + two"

    def fill(self, request):
        found = super().fill(request)
        return replace(found, text=self.later) if self.read and request.near == "x = " else found


@pytest.mark.parametrize(("later", "shown"), [("one + two", ["ne + two"]), ("once", ["nce"]), ("one", ["ne"])])
async def test_a_text_from_all_of_the_context_replaces_the_first_one_while_it_is_typed(monkeypatch, later, shown):
    monkeypatch.setattr(completer, "READ_ON_AFTER_SECONDS", 0.01)
    engine = ChangingItsMind()
    engine.later = later
    async with desk_of(engine) as desk:
        assert await desk.ask(4) == ["one"]
        await looked_ahead(desk)
        asked = len(desk.engine.asked)
        desk.replace(4, 4, "o")
        assert await desk.ask(5) == shown
        assert len(desk.engine.asked) == asked


async def test_a_key_stops_the_reading(stranger):
    await stranger.ask(4)
    stranger.engine.begun.clear()
    stranger.engine.held = True
    await begun(stranger.engine)
    reading, control = stranger.engine.asked[-1], stranger.engine.controls[-1]
    asked = asyncio.ensure_future(stranger.ask(3))
    await begun(stranger.engine)
    assert reading.unread_limit is None and control.cancel.is_set()
    stranger.engine.held = False
    await asked


async def test_a_user_who_waits_for_the_context_has_all_of_it(stranger):
    stranger.completer.settings = Settings(wait_for_context=True)
    await stranger.ask(4)
    assert stranger.engine.asked[0].unread_limit is None


class Fickle(FakeEngine):
    """Knows the line; writes some of its words, or other ones, and other ones again once all of the context is read."""

    line = "".join(f"value_{number} = measure(other_{number}, {number}); " for number in range(12))

    def fill(self, request):
        at, is_all_read = len(request.near), request.unread_limit is None
        rng = random.Random(at + 1_000 * is_all_read)
        right = " ".join(self.line[at:].split(" ")[: rng.randint(1, 3)])
        text = right if rng.random() < 0.4 else "wrong " * rng.randint(2, 9)
        return Fill(text, rng.uniform(0.5, 1.0), steps=1, elapsed=0.01, tokens_unread=0 if is_all_read else 900)


async def test_in_300_keys_no_text_on_display_is_replaced_by_a_shorter_one(monkeypatch):
    monkeypatch.setattr(completer, "LOOK_AHEAD_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(completer, "READ_ON_AFTER_SECONDS", 0.0)
    replaced = kept = pauses = 0
    async with desk_of(Fickle(), "") as desk:
        left = ""
        for at, key in enumerate(Fickle.line[:300]):
            [shown, *_] = await desk.ask(at) or [""]
            kept += bool(left) and shown == left
            replaced += bool(left) and shown != left
            assert len(shown) >= len(left)
            if desk.completer._ahead is not None:
                pauses += 1
                await looked_ahead(desk)
                [again, *_] = await desk.ask(at) or [""]
                assert len(again) >= len(shown)
                replaced += again != shown
                shown = again
            desk.replace(at, at, key)
            left = shown[1:] if shown[:1] == key else ""
    assert kept > 50 and replaced > 5 and pauses > 50
