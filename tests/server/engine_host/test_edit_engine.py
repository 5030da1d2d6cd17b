"""Two models at once: one fills, another makes next edits, which is loaded when it is needed and while it fits."""

import asyncio
from collections.abc import Iterator

import pytest
from mercury_engine.api import Control, Rewrite, RewriteRequest
from mercury_engine.errors import ModelError
from mercury_engine.models import memory

from mercury_lsp.engine_host.edit_engine import RETRY_SECONDS, EditEngine
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine

REQUEST = RewriteRequest("a\n")
BOTH = Settings(model="fills", edit_model="edits")


class Rewriting(FakeEngine):
    """Rewrites every region to its model's name."""

    def __init__(self, name: str, edit_format: str | None = "sweep"):
        super().__init__()
        self.name, self.edit_format = name, edit_format
        self.closed = False

    async def answer(self, request, control: Control | None = None):
        if isinstance(request, RewriteRequest):
            return Rewrite(self.name, steps=1, elapsed=0.0, is_finished=True)
        return await super().answer(request, control)

    def close(self) -> None:
        self.closed = True


class Desk:
    """A connection with a model for fills and one for edits."""

    def __init__(self, fills: str | None = "mercury", edits: str | None = "sweep"):
        self.models = {"fills": Rewriting("fills", fills), "edits": Rewriting("edits", edits)}
        self.loads: list[str | None] = []
        self.failure: Exception | None = None
        self.told: list[str] = []
        self.now = 0.0
        self.engines = Engines(self.load)
        self.fills = self.engines.lease()
        self.edit_engine = EditEngine(self.engines, self.fills, lambda: self.now)
        self.edit_engine.tell = self.told.append

    def load(self, settings: Settings) -> Rewriting:
        self.loads.append(settings.model)
        if settings.model == "edits" and self.failure is not None:
            raise self.failure
        return self.models[settings.model or "fills"]

    async def open(self, settings: Settings = BOTH) -> "Desk":
        self.edit_engine.use(settings)
        await self.fills.load(settings)
        return self

    async def rewritten(self) -> str | None:
        """The name of the model that rewrites."""
        found = await self.edit_engine.rewrite(REQUEST)
        return found and found.text


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, float]]:
    """The machine's memory."""
    found = {"available": 8_000.0}
    monkeypatch.setattr(memory, "available_mb", lambda: found["available"])
    return found


async def test_the_model_for_edits_is_loaded_at_the_first_rewrite_and_once():
    desk = await Desk().open()
    assert desk.loads == ["fills"]
    assert await asyncio.gather(desk.rewritten(), desk.rewritten()) == ["edits", "edits"]
    assert await desk.rewritten() == "edits"
    assert desk.loads == ["fills", "edits"] and desk.told == []


@pytest.mark.parametrize("settings", [Settings(model="fills"), Settings(model="fills", edit_model="fills")])
async def test_without_a_model_of_their_own_edits_take_that_of_the_fills(settings):
    desk = await Desk().open(settings)
    assert await desk.rewritten() == "fills"
    assert desk.loads == ["fills"]


async def test_a_model_that_does_not_fit_is_told_of_once_and_tried_again_after_a_while():
    desk = await Desk().open()
    desk.failure = ModelError("edits needs 0.5 GB of memory, 0.2 GB are left")
    assert [await desk.rewritten(), await desk.rewritten()] == ["fills", "fills"]
    assert desk.loads == ["fills", "edits"]
    [told] = desk.told
    assert "0.2 GB are left. Meanwhile mercury.model makes the next edits" in told
    desk.failure = None
    assert await desk.rewritten() == "fills"
    desk.now += RETRY_SECONDS
    assert await desk.rewritten() == "edits"


async def test_the_model_is_given_up_when_memory_gets_short(free):
    desk = await Desk().open()
    assert await desk.rewritten() == "edits"
    free["available"] = 100.0
    assert await desk.rewritten() == "fills"
    assert "edits was unloaded" in desk.told[0]
    for _ in range(1_000):
        if desk.models["edits"].closed:
            break
        await asyncio.sleep(0.01)
    assert desk.models["edits"].closed and not desk.models["fills"].closed


async def test_a_server_for_edits_that_fails_is_told_once_and_asked_again_after_a_while():
    url = "http://127.0.0.1:9#zeta-2"
    desk = Desk()
    server = desk.models[url] = Rewriting("server", "zeta-2")
    await desk.open(Settings(model="fills", edit_model=url))
    asked = []

    async def fails(request, control: Control | None = None):
        asked.append(request)
        raise ModelError("it hung up")

    server.answer, works = fails, server.answer
    request = RewriteRequest("a\n", cursor=0)
    assert [await desk.edit_engine.rewrite(request) for _ in range(3)] == [None, None, None]
    assert len(asked) == 1 and desk.told == ["mercury.editModel: it hung up. Meanwhile no model makes next edits."]
    desk.now, server.answer = RETRY_SECONDS, works
    found = await desk.edit_engine.rewrite(request)
    assert found is not None and found.text == "server" and not server.closed


@pytest.mark.parametrize(
    ("fills", "edits", "settings", "family"),
    [
        ("mercury", "sweep-card", BOTH, "sweep-card"),
        ("zeta-2.1", None, Settings(model="fills"), "zeta-2.1"),
        ("mercury", None, Settings(model="fills"), None),
        (None, None, Settings(model="fills"), None),
    ],
)
async def test_a_model_of_edits_is_asked_for_its_familys_windows_whichever_it_is(fills, edits, settings, family):
    engine = (await Desk(fills, edits).open(settings)).edit_engine
    found = await engine.family()
    assert (None if found is None else found.name) == family
    assert engine.writes_edits is (family is not None) and engine.looks_ahead
