"""A connection that ends while the server waits for its client: nothing goes on for it in a shared process."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server import editor
from mercury_lsp.server.routes import create_server
from tests.support.editor import place
from tests.support.fake_engine import FakeEngine

URI = "file:///sample.py"

WINDOW = {"window": {"workDoneProgress": True}, "workspace": {"applyEdit": True}}


class Client:
    """Sends its messages, each once the server has nothing to do, answers none of the server's and hangs up."""

    def __init__(self) -> None:
        self.engine, self.loads = FakeEngine(), 0
        self.engines = Engines(self._load)

    async def talk(self, capabilities: Any, *messages: tuple[str, Any]) -> None:
        """What the server does until long after the end."""
        server = create_server(self.engines, lambda _: None)
        initialize = ("initialize", {"capabilities": capabilities, "processId": None, "rootUri": None})
        await server.serve(self._sent([initialize, ("initialized", {}), *messages]))
        server.close()
        await asyncio.sleep(0.2)

    def _load(self, settings: Any) -> FakeEngine:
        self.loads += 1
        return self.engine

    async def _sent(self, messages: list[tuple[str, Any]]) -> AsyncIterator[Any]:
        for number, (method, params) in enumerate(messages):
            is_request = not method.startswith("textDocument/did") and method != "initialized"
            yield {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if is_request else {})
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "ANSWER_SECONDS", 0.1)


async def test_no_model_is_loaded_by_settings_that_never_came():
    client = Client()
    await client.talk({"workspace": {"configuration": True}})
    assert client.loads == 0 and [*client.engines.loaded()] == []


async def test_no_fill_is_made_for_a_command():
    client = Client()
    document = {"uri": URI, "languageId": "python", "version": 1, "text": "x = "}
    where = place(URI, 0, 4) | {"textDocument": {"uri": URI, "version": 1}}
    command = {"command": "mercury.fill", "arguments": [where]}
    await client.talk(
        WINDOW, ("textDocument/didOpen", {"textDocument": document}), ("workspace/executeCommand", command)
    )
    assert client.loads == 1 and client.engine.asked == []
