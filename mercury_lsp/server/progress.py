"""Work done progress: the client shows that work is going on, and lets its user cancel it."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import PurePath
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from lsprotocol import types
from mercury_engine.model_folders import INSTALLED
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

logger = logging.getLogger(__name__)

CLIENT_ANSWER_SECONDS = 2.0
"""How long the server waits for a client to accept a progress, or to send its configuration."""


class ClientProgress:
    """A context manager that shows progress while its block runs; without a token it does nothing."""

    def __init__(
        self, server: LanguageServer, token: types.ProgressToken | None, title: str, *, cancellable: bool = False
    ):
        self.message: str | None = None
        """The message at the end."""
        self._progress = server.work_done_progress
        self._token = token
        self._begin = types.WorkDoneProgressBegin(title, cancellable=cancellable)
        self._task = asyncio.current_task() if cancellable else None

    def __enter__(self) -> Self:
        if self._token is not None:
            self._progress.begin(self._token, self._begin)
            self._progress.tokens[self._token].add_done_callback(self._on_cancel)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._token is not None:
            self._progress.tokens.pop(self._token, None)
            message = self.message if kind is None else "cancelled"
            self._progress.end(self._token, types.WorkDoneProgressEnd(message=message))

    def _on_cancel(self, _: Any) -> None:
        if self._task is not None:
            self._task.cancel()


async def new_token(server: LanguageServer) -> str | None:
    """A token for progress that the server starts itself; None if the client shows none."""
    window = server.client_capabilities.window
    if window is None or not window.work_done_progress:
        return None
    token = uuid4().hex
    try:
        async with asyncio.timeout(CLIENT_ANSWER_SECONDS):
            await server.work_done_progress.create_async(token)
    except (TimeoutError, JsonRpcException) as error:
        logger.warning("the client refused a progress: %r", error)
        return None
    return token


async def loading_progress(server: LanguageServer, model: str | None, loading: "asyncio.Future[Any]") -> None:
    """Show that a model is loading, until that succeeds or fails."""
    name = PurePath(model.removeprefix(INSTALLED)).name if model else "the bundled model"
    with ClientProgress(server, await new_token(server), f"Loading {name}") as work:
        await asyncio.wait([loading])
        failed = loading.cancelled() or loading.exception() is not None
        work.message = "failed" if failed else "ready"


def send_parts(server: LanguageServer, token: types.ProgressToken, parts: Iterable[Any]) -> None:
    """Send partial results under the client's token."""
    for part in parts:
        server.protocol.notify(types.PROGRESS, types.ProgressParams(token, part))
