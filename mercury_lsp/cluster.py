"""`serve run mercury_lsp.cluster:app`: the HTTP API of `mercury-lsp serve --http` on Ray Serve, for a team.

A replica is an engine with the whole API over it, and several sessions share its forward passes. Requests with the same
`x-session-id` go to the same replica, which has their context cached. Fronts take the requests and hand them on; one
whose replica dies before a reply has begun goes to another. docs/scale.md has the commands.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayActorError
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.handle import DeploymentHandle
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Message, Scope

from mercury_lsp import default_model
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.loading import load_engine
from mercury_lsp.errors import UsageError
from mercury_lsp.http.application import application
from mercury_lsp.http.guard import MAX_BODY_BYTES
from mercury_lsp.http.listener import named_token
from mercury_lsp.http.service import Service
from mercury_lsp.settings import Settings

logger = logging.getLogger(__name__)

SESSION_HEADER = "x-session-id"

REPLICA_HEADER = b"x-replica"
"""Of replies: the process that answered."""

TRIES = 3
"""Replicas that a request is handed to, one after another, while they die."""

TARGET_REQUESTS, MAX_REQUESTS = 3, 32
"""Requests at a time for which a replica is added, and above which others get them."""

DRAIN_SECONDS = 30.0
"""For requests under way when a replica is stopped: on scaling down, and when the model is replaced."""

DEFAULTS = {"model": "bundled", "min_replicas": "1", "max_replicas": "4", "fronts": "1", "cpus": "1", "gpus": "0"}
"""Arguments of `app`. `cpus`, `gpus`: what a replica occupies."""


class Replica:
    """One engine and the API over it."""

    async def __init__(self, model: str, token: str | None, threads: int):  # type: ignore[misc]  # Ray awaits it
        """Loads the model; a replica gets no requests before."""
        self._service = Service(Engines(load_engine), Settings(model=default_model.named(model), threads=threads))
        self._app = application(self._service, token)
        await self._service.engine()

    async def answer(self, scope: Scope, body: bytes) -> AsyncGenerator[Message]:
        """What the application sends for a request; closing the generator is the client's hanging up."""
        sent, received = asyncio.Queue[Message | None](), asyncio.Queue[Message]()
        received.put_nowait({"type": "http.request", "body": body})

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (REPLICA_HEADER, str(os.getpid()).encode())]
            sent.put_nowait(message)

        answering = asyncio.ensure_future(self._app(scope, received.get, send))
        answering.add_done_callback(lambda _: sent.put_nowait(None))
        try:
            while (message := await sent.get()) is not None:
                yield message
            await answering
        finally:
            answering.cancel()


class Front:
    """Takes requests and hands them to the replica of their session."""

    def __init__(self, replicas: DeploymentHandle):
        self._replicas = replicas

    async def __call__(self, request: Request) -> Response:
        """The reply of a replica."""
        body = await _body(request)
        scope = {
            name: request.scope[name]
            for name in ("type", "http_version", "method", "scheme", "path", "raw_path", "query_string", "headers")
        } | {"root_path": "", "client": None, "server": None}
        replicas = self._replicas.options(stream=True, session_id=request.headers.get(SESSION_HEADER, ""))
        for attempt in range(1, TRIES + 1):
            messages = replicas.answer.remote(scope, body)
            try:
                head, first = await anext(messages), await anext(messages)
            except RayActorError as error:
                logger.warning("a replica died (try %d of %d): %s", attempt, TRIES, type(error).__name__)
                continue
            except asyncio.CancelledError:  # the client hung up
                messages.cancel()
                raise
            return _reply(head, first, messages)
        return JSONResponse({"error": {"message": "no replica answers; try again", "type": "server_error"}}, 503)


def _reply(head: Message, first: Message, messages: Any) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        try:
            yield first.get("body", b"")
            async for message in messages:
                yield message.get("body", b"")
        finally:
            with suppress(Exception):
                messages.cancel()

    reply = StreamingResponse(parts(), head["status"])
    reply.raw_headers = list(head["headers"])
    return reply


async def _body(request: Request) -> bytes:
    """The body, cut off where the replica refuses it."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            break
    return bytes(body)


def _require(there: Mapping[str, float], replicas: int, each: Mapping[str, float]) -> None:
    """Raise UsageError if a cluster can never hold the replicas: Ray itself would wait, and only log it.

    there: the cluster's CPUs and GPUs; each: what one replica occupies.
    """
    short = [
        f"{replicas * amount:g} {name}s, of which the cluster has {there.get(name, 0):g}"
        for name, amount in each.items()
        if replicas * amount > there.get(name, 0)
    ]
    if short:
        fewer = "give fewer min_replicas, cpus or gpus, or first start Ray on more machines"
        raise UsageError(f"min_replicas={replicas} occupies {' and '.join(short)}: {fewer}")


def app(arguments: Mapping[str, str]) -> Application:
    """The application, by arguments such as `model=qwen2.5-coder-0.5b min_replicas=2`. Raises UsageError."""
    if unknown := sorted(arguments.keys() - DEFAULTS.keys()):
        raise UsageError(f"unknown: {', '.join(unknown)}; there are {', '.join(DEFAULTS)}")
    given = DEFAULTS | dict(arguments)
    cpus, gpus = float(given["cpus"]), float(given["gpus"])
    if not ray.is_initialized():  # `serve run` connects only after this, and then uses the connection
        ray.init(namespace="serve")
    _require(ray.cluster_resources(), int(given["min_replicas"]), {"CPU": cpus, "GPU": gpus})
    replicas = serve.deployment(
        Replica,
        name="replicas",
        max_ongoing_requests=MAX_REQUESTS,
        autoscaling_config=AutoscalingConfig(
            min_replicas=int(given["min_replicas"]),
            max_replicas=int(given["max_replicas"]),
            target_ongoing_requests=TARGET_REQUESTS,
        ),
        ray_actor_options={"num_cpus": cpus, "num_gpus": gpus},
        request_router_config=RequestRouterConfig(request_router_class=ConsistentHashRouter),
        graceful_shutdown_timeout_s=DRAIN_SECONDS,
        health_check_period_s=2,
    )
    fronts = serve.deployment(
        Front,
        name="fronts",
        num_replicas=int(given["fronts"]),
        max_ongoing_requests=1000,
        ray_actor_options={"num_cpus": 0},  # they only wait; a share of a CPU may never become free
        graceful_shutdown_timeout_s=DRAIN_SECONDS,
    )
    return fronts.bind(replicas.bind(given["model"], named_token(), max(1, int(cpus))))
