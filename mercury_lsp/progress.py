"""Tells the client that the model is being loaded."""

import asyncio
import logging
from pathlib import PurePath
from typing import Any
from uuid import uuid4

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

logger = logging.getLogger(__name__)


async def loading_progress(server: LanguageServer, model: str | None, loading: "asyncio.Future[Any]") -> None:
    """Show a progress in the client, if it has any, until loading is done, however it ends."""
    window = server.client_capabilities.window
    if window is None or not window.work_done_progress:
        return
    token = uuid4().hex
    try:
        await server.work_done_progress.create_async(token)
    except JsonRpcException as error:
        logger.warning("the client refused a progress: %s", error)
        return
    name = PurePath(model).name if model else "the bundled model"
    server.work_done_progress.begin(token, types.WorkDoneProgressBegin(title=f"Loading {name}"))
    await asyncio.wait([loading])
    failed = loading.cancelled() or loading.exception() is not None
    server.work_done_progress.end(token, types.WorkDoneProgressEnd(message="failed" if failed else "ready"))
