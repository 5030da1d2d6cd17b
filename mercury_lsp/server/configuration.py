"""The settings of one connection: their sources, what a change of them causes, and the offer of a larger model."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count
from pathlib import Path
from time import time
from typing import Any, Literal

from lsprotocol import types
from mercury_engine.api import InferenceEngine

from mercury_lsp import default_model
from mercury_lsp.engine_host.loading import why_not_loaded
from mercury_lsp.engine_host.own_thread import answered
from mercury_lsp.errors import SettingsError
from mercury_lsp.server.editor import Editor
from mercury_lsp.server.session import Session
from mercury_lsp.server.status import LOADING, Status, StatusBoard
from mercury_lsp.settings import EngineKey, Settings, section_of

OFFER_METHOD = "mercury/offerModel"

LARGER_MODEL_COMMAND = [sys.executable, "-P", "-m", "mercury_lsp.installed_models.larger"]
"""Prints the offer, if any; with `add` it downloads the model, prints its progress and makes it the default."""

AGAIN_SECONDS = 14 * 86400
"""Before users who postponed are asked again."""

Answer = Literal["yes", "notNow", "never"]


class Configuration:
    """The editor's settings on top of its initialization options."""

    def __init__(self, session: Session, editor: Editor, status: StatusBoard):
        self.larger_model = LargerModel(editor, status, self.update)
        self._session, self._editor, self._status = session, editor, status
        self._options: Any = None
        self._watches_sources = False
        self._updates = count(1)
        self._newest = 0
        """The number of the update whose settings are in use."""
        self._loaded: EngineKey | None = None
        """What the engine was last loaded with; None before the first load and after a failed one."""
        self._loading: asyncio.Future[InferenceEngine] | None = None
        """The newest load."""
        self._watching = ExitStack()
        """Ends the watch of a remote engine."""
        edit_engine = session.completer.edit_engine
        edit_engine.log, edit_engine.count = editor.log, session.statistics.asked
        edit_engine.tell = lambda text: editor.show_message(types.MessageType.Warning, f"Mercury: {text}")

    def begin(self, options: Any) -> None:
        """Keep the options: their object `mercury`, or else all of them."""
        if isinstance(options, Mapping):
            options = options.get("mercury", None if self._editor.capabilities.is_copilot else options)
        self._options = options

    async def update(self, pushed: Any = None) -> None:
        """Use the settings that the editor pushed, or ask for them; load the model if they name another.

        Invalid settings are reported to the user and change nothing; neither do outdated ones.
        """
        update = next(self._updates)
        section = pushed.get("mercury") if isinstance(pushed, Mapping) else None
        if section is None:
            section = await self._editor.settings_section()
        try:
            settings = Settings.parse(default_model.added_to(section_of(self._options) | section_of(section)))
            if named := [each for each in (settings.model, settings.edit_model, settings.engine) if each is not None]:
                folders = tuple(self._session.folders.values())
                await answered(partial(settings.require_trusted_models, folders), " and ".join(named))
            if update > self._newest:
                self._newest = update
                self._session.configure(settings)
        except SettingsError as error:
            self._editor.show_message(types.MessageType.Warning, f"Mercury: {error}. The settings stay as they were.")
        self._status.change(enabled=self._session.settings.enabled)
        self._watch_sources()
        await self._load_model()
        settings = self._session.settings
        if settings.model is settings.engine is None and self._session.completer.engine is not None:
            self.larger_model.offer()

    async def _load_model(self) -> None:
        """Load the model that the settings name, unless it is in use; show a failure to the user.

        A load that ends after a newer one has begun says nothing.
        """
        key = self._session.settings.engine_key
        if self._loaded == key:
            return
        self._loaded = key
        completer = self._session.completer
        self._status.change(LOADING)
        self._loading = loading = asyncio.ensure_future(completer.load())
        shown = asyncio.ensure_future(self._editor.loading_progress(completer.settings.model, loading))
        try:
            engine = await loading
            if loading is self._loading:
                self._editor.log(f"loaded {engine.name} on {engine.device}")
                self._watch(engine)
        except Exception as error:
            reason = why_not_loaded(error)
            if loading is self._loading:
                self._loaded = None  # the next update tries again
                self._editor.show_message(types.MessageType.Error, f"Mercury cannot load its model: {reason}")
                self._status.change(Status("Error", message=reason))
        await shown

    def _watch(self, engine: InferenceEngine) -> None:
        """Show the state of the engine; that of a remote one also when it changes."""
        self._watching.close()
        self._status.change(Status())
        if self._session.settings.engine is None:
            return
        from mercury_lsp.engine_host.remote.engine import RemoteEngine  # importing HTTP takes a while

        if isinstance(engine, RemoteEngine):

            def changed() -> None:
                self._status.change(Status("Warning" if engine.has_failed else "Normal", message=engine.notice))
                self._session.completer.allow_rewrites()

            self._watching.callback(engine.watch(changed))
            changed()
            self._editor.log(engine.notice)

    def close(self) -> None:
        """Load no more models."""
        self._watching.close()
        self.larger_model.close()

    def _watch_sources(self) -> None:
        is_wanted = self._session.settings.workspace_context
        can_watch = bool(self._session.folders) and self._editor.capabilities.registers_files
        if is_wanted and can_watch and not self._watches_sources:
            self._watches_sources = True
            self._editor.watch_source_files()
        self._session.other_files.enable(is_wanted, client_watches=self._watches_sources)


class LargerModel:
    """Offers the user of the bundled model a larger one, once, and switches to it.

    Only editors that can ask unobtrusively get the offer. A process of its own makes the offer and the download.
    """

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
            async for line in _lines(LARGER_MODEL_COMMAND):
                offer: dict[str, Any] = json.loads(line)
                _asked().parent.mkdir(parents=True, exist_ok=True)
                _asked().write_text("asked\n")
                self._editor.notify(OFFER_METHOD, offer)

    async def _download(self) -> None:
        said = ""
        try:
            async for said in _lines([*LARGER_MODEL_COMMAND, "add"]):
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
