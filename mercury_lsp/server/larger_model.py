"""Offers users of the bundled model a larger one, once, and switches to it.

Only clients that can ask unobtrusively get the offer. A process of its own, `mercury_lsp.installed_models.larger`,
makes the offer and the download.
"""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Any, Literal

from lsprotocol import types

from mercury_lsp import default_model
from mercury_lsp.server.editor import Editor
from mercury_lsp.server.status import StatusBoard

OFFER_METHOD = "mercury/offerModel"

COMMAND = [sys.executable, "-P", "-m", "mercury_lsp.installed_models.larger"]
"""Prints the offer, if any; with `add` it downloads the model, prints its progress and makes it the default."""

AGAIN_SECONDS = 14 * 86400
"""Before users who postponed are asked again."""

Answer = Literal["yes", "notNow", "never"]


class LargerModel:
    """The offer to one editor."""

    def __init__(self, editor: Editor, status: StatusBoard, change_over: Callable[[], Awaitable[None]]):
        self._editor, self._status, self._change_over = editor, status, change_over
        self._work: asyncio.Task[None] | None = None
        self._is_downloading = False

    def offer(self) -> None:
        """Offer it, unless the editor cannot, a model was chosen or it was offered lately; returns at once."""
        if self._editor.capabilities.takes_offers and self._work is None and not default_model.path().exists():
            self._work = asyncio.ensure_future(self._ask())

    def take(self, answer: Answer) -> None:
        """The user's answer; "yes" begins the download."""
        if answer == "yes" and not self._is_downloading:
            self._is_downloading = True
            self._work = asyncio.ensure_future(self._download())
        elif answer == "never":
            with suppress(OSError):  # the user is asked again then
                _asked().write_text("never\n")

    def close(self) -> None:
        """Stop reporting; a download goes on."""
        if self._work is not None:
            self._work.cancel()

    async def _ask(self) -> None:
        with suppress(OSError):
            if _asked().read_text() == "never\n" or time() - _asked().stat().st_mtime < AGAIN_SECONDS:
                return
        with suppress(OSError):  # an offer that cannot be remembered would be made every time
            async for line in _lines(COMMAND):
                offer: dict[str, Any] = json.loads(line)
                _asked().parent.mkdir(parents=True, exist_ok=True)
                _asked().write_text("asked\n")
                self._editor.notify(OFFER_METHOD, offer)

    async def _download(self) -> None:
        said = ""
        try:
            async for said in _lines([*COMMAND, "add"]):
                self._status.change(work=said)
        except ChildProcessError:
            self._editor.show_outcome(f"Mercury: {said or 'the download stopped'}", types.MessageType.Warning)
            return
        finally:
            self._is_downloading = False
            self._status.change(work="")
        await self._change_over()


def _asked() -> Path:
    """The file that holds whether, and by its time when, the user was asked."""
    return default_model.path().with_name("larger-model")


async def _lines(command: list[str]) -> AsyncIterator[str]:
    """A program's output by line; the program outlives this process. Raises ChildProcessError if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    async for line in process.stdout:
        yield line.decode(errors="replace").strip()
    if await process.wait() != 0:
        raise ChildProcessError(command)
