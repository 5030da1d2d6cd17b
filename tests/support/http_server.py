"""The HTTP API on a free port, in the test's own event loop."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    FillRequest,
    InferenceEngine,
    RegionHunk,
    Request,
    Rewrite,
    RewriteRequest,
)

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.http.listener import HttpAddress, HttpListener
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine


class Scripted(FakeEngine):
    """Answers by the end of the text before the gap, as a script has it; without one a word, once."""

    def __init__(self, script: dict[str, str | tuple[str, ...]] | None = None):
        super().__init__()
        self.script = script

    def fill(self, request: FillRequest) -> Fill:
        texts: str | tuple[str, ...] = "" if "suggested" in request.near else "suggested"
        if self.script is not None:
            texts = next((text for end, text in self.script.items() if request.near.endswith(end)), "")
        first, *others = [texts] if isinstance(texts, str) else texts
        made = [Fill(text, 0.9, 2, 0.002, True, tokens_read=3, prompt_tokens=8, tokens=2) for text in (first, *others)]
        return Fill(first, 0.9, 2, 0.002, True, tokens_read=3, prompt_tokens=8, tokens=2, others=tuple(made[1:]))


class Editing(Scripted):
    """Renames `old` to `new` in a region."""

    edit_format = "mercury"

    def __init__(self) -> None:
        super().__init__()
        self.regions: list[RewriteRequest] = []

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        if not isinstance(request, RewriteRequest):
            return await super().answer(request, control)
        self.regions.append(request)
        lines = enumerate(request.text.splitlines(keepends=True))
        hunks = tuple(RegionHunk(at, at + 1, line.replace("old", "new"), 0.9) for at, line in lines if "old" in line)
        return Rewrite(request.text.replace("old", "new"), 4, 0.0, True, tokens_read=20, hunks=hunks)


@dataclass
class Served:
    """A server, and a client of it."""

    url: str
    engine: Any
    engines: Engines
    client: httpx.AsyncClient

    @property
    def inception(self) -> Any:
        """Mercury's SDK."""
        from inceptionai import AsyncInception

        return AsyncInception(api_key="any", base_url=self.url, max_retries=0)

    @property
    def openai(self) -> Any:
        """OpenAI's SDK."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key="any", base_url=f"{self.url}/v1", max_retries=0)

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers=headers)

    async def json(self, path: str, body: Any) -> Any:
        """The reply to a request that is fine."""
        reply = await self.post(path, body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def events(self, path: str, body: Any) -> list[Any]:
        """The events of a stream; its end without JSON as it is."""
        reply = await self.post(path, body)
        assert reply.status_code == 200, reply.text
        lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
        return [json.loads(line) if line.startswith("{") else line for line in lines]


@asynccontextmanager
async def served(
    engine: InferenceEngine | None = None, load: Callable[[Settings], InferenceEngine] | None = None
) -> AsyncIterator[Served]:
    """A server of this engine."""
    engine = engine or Scripted()
    listener = HttpListener(HttpAddress("127.0.0.1", 0), Settings())
    engines = Engines(load or (lambda _: engine))
    async with (
        listener.serving(engines),
        httpx.AsyncClient(base_url=listener.url, timeout=60, trust_env=False) as client,
    ):
        yield Served(listener.url, engine, engines, client)
