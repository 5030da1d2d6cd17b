"""Work done progress: the client shows that work is going on, and lets its user cancel it."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any
from uuid import uuid4

from lsprotocol import types
from mercury_engine.model_folders import INSTALLED
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

logger = logging.getLogger(__name__)

CLIENT_ANSWER_SECONDS = 2.0
"""For a client to accept a progress, or to send its configuration."""


@contextmanager
def client_progress(
    server: LanguageServer, token: types.ProgressToken | None, title: str, *, cancellable: bool = False
) -> Iterator[types.WorkDoneProgressEnd]:
    """Shows progress while the block runs, and then the message that it has set; nothing without a token."""
    end, progress, task = types.WorkDoneProgressEnd(), server.work_done_progress, asyncio.current_task()
    if token is None:
        yield end
        return
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=cancellable))
    if cancellable and task is not None:
        progress.tokens[token].add_done_callback(lambda _: task.cancel())
    try:
        yield end
    except BaseException:
        end.message = "cancelled"
        raise
    finally:
        progress.tokens.pop(token, None)
        progress.end(token, end)


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
    with client_progress(server, await new_token(server), f"Loading {name}") as work:
        await asyncio.wait([loading])
        failed = loading.cancelled() or loading.exception() is not None
        work.message = "failed" if failed else "ready"
