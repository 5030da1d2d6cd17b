"""The API on Ray Serve: what a replica sends, and where a front hands requests. Ray itself is replaced."""

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncGenerator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.errors import UsageError
from mercury_lsp.http.application import application
from mercury_lsp.http.service import Service
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine, begun

SESSION = "x-session-id"


class ReplicaDied(Exception):
    """Ray's error for a replica whose process is gone."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, over the names of Ray that it uses."""
    names = {
        "ray": {
            "serve": SimpleNamespace(deployment=lambda *_, **options: SimpleNamespace(bind=lambda *given: given)),
            "is_initialized": lambda: False,
            "init": lambda namespace: None,
            "cluster_resources": lambda: {"CPU": 2.0, "memory": 1e9},
        },
        "ray.exceptions": {"RayActorError": ReplicaDied},
        "ray.serve": {"Application": object},
        "ray.serve.config": {"AutoscalingConfig": SimpleNamespace, "RequestRouterConfig": SimpleNamespace},
        "ray.serve.experimental.consistent_hash_router": {"ConsistentHashRouter": object},
        "ray.serve.handle": {"DeploymentHandle": object},
    }
    for name, attributes in names.items():
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "mercury_lsp.cluster", raising=False)
    yield importlib.import_module("mercury_lsp.cluster")
    sys.modules.pop("mercury_lsp.cluster", None)


def replica_of(cluster: Any, engine: FakeEngine) -> Any:
    """A replica with this engine."""
    replica = object.__new__(cluster.Replica)
    replica._service = Service(Engines(lambda _: engine), Settings())
    replica._app = application(replica._service, None)
    return replica


class Handle:
    """Hands requests to replicas in turn; None stands for one that is dead."""

    def __init__(self, *replicas: Any):
        self._replicas, self.sessions, self.cancelled = list(replicas), list[str](), 0
        self.answer = SimpleNamespace(remote=self._handed)

    def options(self, stream: bool, session_id: str) -> "Handle":
        self.sessions.append(session_id)
        return self

    def _handed(self, scope: Any, body: bytes) -> "Messages":
        return Messages(self, self._replicas.pop(0).answer(scope, body) if self._replicas[0] else self._dead())

    async def _dead(self) -> AsyncGenerator[Any]:
        self._replicas.pop(0)
        raise ReplicaDied
        yield


class Messages:
    """Ray's generator of a reply."""

    def __init__(self, handle: Handle, messages: AsyncGenerator[Any]):
        self._handle, self._messages = handle, messages

    def __aiter__(self) -> "Messages":
        return self

    async def __anext__(self) -> Any:
        return await anext(self._messages)

    def cancel(self) -> None:
        self._handle.cancelled += 1


def asking(body: Any, path: str = "/infill", session: str = "s") -> Request:
    """A request of a client, whole."""
    headers = [(b"host", b"127.0.0.1:8000"), (SESSION.encode(), session.encode())]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "headers": headers,
    }
    scope |= {"raw_path": path.encode(), "query_string": b""}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    return Request(scope, receive)


async def text_of(reply: Any) -> str:
    parts = [part async for part in reply.body_iterator] if hasattr(reply, "body_iterator") else [reply.body]
    return b"".join(parts).decode()


async def test_a_request_goes_to_the_replica_of_its_session_and_is_answered_once(cluster: Any):
    handle = Handle(replica_of(cluster, FakeEngine()))
    reply = await cluster.Front(handle)(asking({"prompt": "x = ", "stop": ["\n"]}, session="editor-7"))
    assert reply.status_code == 200 and json.loads(await text_of(reply))["content"] == "suggested"
    assert handle.sessions == ["editor-7"] and b"x-replica" in dict(reply.raw_headers)


async def test_a_request_whose_replica_dies_goes_to_another_a_few_times(cluster: Any):
    engine = FakeEngine()
    reply = await cluster.Front(Handle(None, None, replica_of(cluster, engine)))(
        asking({"prompt": "x = ", "stop": ["\n"]})
    )
    assert json.loads(await text_of(reply))["content"] == "suggested" and len(engine.asked) == 1
    refused = await cluster.Front(Handle(*[None] * cluster.TRIES))(asking({"prompt": "x = "}))
    assert refused.status_code == 503 and "try again" in await text_of(refused)


async def test_a_client_that_hangs_up_stops_the_engine(cluster: Any):
    engine = FakeEngine()
    engine.held = True
    replica = replica_of(cluster, engine)
    messages = replica.answer(asking({}).scope, json.dumps({"prompt": "x = "}).encode())
    waiting = asyncio.ensure_future(anext(messages))
    await begun(engine)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(engine.controls[0].cancel.wait, 10)
    handle = Handle(replica)
    asked = asyncio.ensure_future(cluster.Front(handle)(asking({"prompt": "y = "})))
    await begun(engine)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert handle.cancelled == 1


async def test_a_body_that_is_too_long_is_refused_by_the_replica(cluster: Any):
    reply = await cluster.Front(Handle(replica_of(cluster, FakeEngine())))(asking(b" " * (cluster.MAX_BODY_BYTES + 9)))
    assert reply.status_code == 413


def test_unknown_arguments_and_short_tokens_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERCURY_TOKEN", "short")
    with pytest.raises(UsageError, match="16 characters"):
        cluster.app({})
    monkeypatch.delenv("MERCURY_TOKEN")
    with pytest.raises(UsageError, match="unknown: replicas"):
        cluster.app({"replicas": "2"})
    [(model, token, threads)] = cluster.app({"model": "qwen2.5-coder-0.5b", "cpus": "2"})
    assert (model, token, threads) == ("qwen2.5-coder-0.5b", None, 2)


def test_a_cluster_that_can_never_hold_the_replicas_is_refused_at_once(cluster: Any):
    """It has two CPUs and no GPU; the fronts occupy neither."""
    assert cluster.app({"min_replicas": "2"})
    with pytest.raises(UsageError, match="min_replicas=1 occupies 0.25 GPUs, of which the cluster has 0:"):
        cluster.app({"gpus": "0.25"})
    with pytest.raises(UsageError, match="occupies 6 CPUs, of which the cluster has 2 and 3 GPUs, of which"):
        cluster.app({"min_replicas": "3", "cpus": "2", "gpus": "1"})
