"""Loads the engine that settings name, and asks one for commands, which have no event loop and may wait."""

import asyncio
import gc
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mercury_engine.api import Control, Fill, FillRequest, InferenceEngine, Rewrite, RewriteRequest
from mercury_engine.errors import MercuryError

from mercury_lsp.engine_host import gpu_proof
from mercury_lsp.errors import is_short_of_memory
from mercury_lsp.settings import Settings, is_url

logger = logging.getLogger(__name__)

GARBAGE_OBJECTS = 10_000
"""New objects after which garbage is collected, for 0.2 ms: once in some 100 keys, with Python's 700 in every tenth."""

LoadEngine = Callable[[Settings], InferenceEngine]


def load_engine(settings: Settings) -> InferenceEngine:
    """The engine that the settings name; takes seconds. Raises ModelError."""
    if settings.model is not None and is_url(settings.model):
        from mercury_lsp.engine_host.remote.editing import RemoteEdits  # as below

        return RemoteEdits(settings.model, settings.edit_requests_per_minute)
    if settings.engine is not None:
        from mercury_lsp.engine_host.remote.engine import RemoteEngine  # what speaks HTTP takes a while

        return RemoteEngine(settings.engine, partial(load_engine, replace(settings, engine=None)))
    # Everything allocated now stays: collecting it would take a twelfth of the load, and 0.1 s in every pause.
    gc.disable()
    gc.set_threshold(GARBAGE_OBJECTS)
    try:
        from mercury_engine.engine import Engine  # takes a while

        return Engine.load(settings.model, device=gpu_proof.device_for(settings), threads=settings.threads)
    finally:
        gc.freeze()
        gc.enable()


def why_not_loaded(error: Exception) -> str:
    """Why loading failed, for users; unexpected errors are logged, too."""
    if isinstance(error, MercuryError):
        return str(error)
    if is_short_of_memory(error):
        return "there is not enough memory for the model; raise its limit (ulimit -v) or choose a smaller one"
    logger.error("loading failed", exc_info=error)
    return f"{type(error).__name__}: {error}; run mercury-lsp doctor"


def filled(engine: InferenceEngine, request: FillRequest, control: Control | None = None) -> Fill:
    """The fill. Raises what the engine raises."""
    answer = asyncio.run(engine.answer(request, control))
    assert isinstance(answer, Fill)
    return answer


def rewritten(engine: InferenceEngine, request: RewriteRequest) -> Rewrite:
    """The rewritten region. Raises what the engine raises."""
    answer = asyncio.run(engine.answer(request))
    assert isinstance(answer, Rewrite)
    return answer
