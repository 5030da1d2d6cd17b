"""Changes of settings that overtake each other."""

import asyncio
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from mercury_engine.errors import ModelNotFound

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.configuration import Configuration
from mercury_lsp.server.editor import EditorCapabilities
from mercury_lsp.server.session import Session
from mercury_lsp.server.status import LOADING, Status, StatusBoard
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine


class Editor(SimpleNamespace):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(capabilities=EditorCapabilities(), messages=[])
        self.answers, self.section = asyncio.Event(), dict[str, Any]()

    async def settings_section(self) -> Any:
        await self.answers.wait()
        return self.section

    def show_message(self, kind: Any, message: str) -> None:
        self.messages.append(message)

    def log(self, message: str) -> None:
        self.messages.append(message)

    async def loading_progress(self, model: str | None, loading: Any) -> None: ...


@pytest.fixture
def let_go() -> Iterator[Event]:
    """Set once the older model may end its load."""
    made = Event()
    yield made
    made.set()


@pytest.mark.parametrize("is_wrong", [False, True], ids=["right", "wrong"])
async def test_settings_that_were_asked_for_earlier_and_come_later_give_way_to_right_ones(is_wrong: bool):
    editor, session = Editor(), Session(Engines(lambda _: FakeEngine()))
    configuration = Configuration(session, editor, StatusBoard(lambda _: None))
    asked = asyncio.ensure_future(configuration.update())
    await asyncio.sleep(0)
    await configuration.update({"mercury": {"eagerness": "never" if is_wrong else "low"}})
    editor.section = {"eagerness": "high"}
    editor.answers.set()
    await asked
    assert session.settings.eagerness == ("high" if is_wrong else "low")
    session.close()


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "succeeds"])
async def test_of_a_model_that_is_named_again_only_the_newest_load_is_told(let_go: Event, fails: bool):
    goes = {"first": Event(), "other": Event(), "again": let_go}
    begun = []

    def load(settings: Settings) -> FakeEngine:
        begun.append(name := [*goes][len(begun)])
        assert goes[name].wait(60)
        if name == "first" and fails:
            raise ModelNotFound("no such model yet")
        return FakeEngine()

    editor, board, session = Editor(), StatusBoard(lambda _: None), Session(Engines(load))
    configuration, updates = Configuration(session, editor, board), []
    for number, model in enumerate(("some", "other", "some"), 1):
        updates.append(asyncio.ensure_future(configuration.update({"mercury": {"model": model}})))
        while len(begun) < number:
            await asyncio.sleep(0.001)
    goes["first"].set()
    await updates[0]
    assert board.current == LOADING and editor.messages == []
    goes["other"].set()
    let_go.set()
    await asyncio.gather(*updates)
    assert board.current == Status() and editor.messages == ["loaded fake on cpu"]
    session.close()
