"""The engine for next edits: a second one if the settings name a model for edits, else that of the fills.

The second engine is loaded at the first next edit, and unloaded if memory gets short; then the first one rewrites if it
can. A server that fails is left alone for a while.
"""

import logging
import math
from collections.abc import Callable
from time import monotonic
from typing import Any

from mercury_engine.api import Control, InferenceEngine, Rewrite, RewriteRequest
from mercury_engine.errors import Cancelled, MercuryError
from mercury_engine.models import memory
from mercury_engine.prompt.edit_families import Family, family_of

from mercury_lsp.engine_host.engines import Engines, Lease
from mercury_lsp.engine_host.loading import why_not_loaded
from mercury_lsp.settings import Settings, is_elsewhere, is_url

logger = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
"""Before a model that failed or was unloaded is tried again."""


class EditEngine:
    """Rewrites for one connection; used on the event loop's thread only."""

    def __init__(self, engines: Engines, fills: Lease, clock: Callable[[], float] = monotonic):
        """`fills`: the connection's lease of the other engine."""
        self._own, self._fills, self._clock = engines.lease(), fills, clock
        self._settings: Settings | None = None
        """Settings with the second model as their model; None without one."""
        self._refused_until = -math.inf
        self._told = ""
        self.tell: Callable[[str], None] = logger.warning
        """Called with messages for the user, once each."""
        self.log: Callable[[str], None] = logger.info
        self.count: Callable[[str, int], None] = lambda model, requests: None
        """Called with the model's name and the number of requests that were sent to its server."""

    @property
    def engine(self) -> InferenceEngine | None:
        """The second engine; None while it is not loaded."""
        return self._own.engine

    @property
    def can_rewrite(self) -> bool:
        """Whether a model can rewrite, as far as is known before it is loaded."""
        return self._settings is not None or self._fills_rewrite

    @property
    def is_remote(self) -> bool:
        """Whether a server makes the edits."""
        return self._settings is not None and is_url(self._settings.model or "")

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server on another machine makes the edits."""
        return self._settings is not None and is_elsewhere(self._settings.model)

    def of_server(self) -> dict[str, Any]:
        """The notice and the number of requests of a server; empty without one."""
        engine = self.engine if self.is_remote else None
        return {} if engine is None else {name: getattr(engine, name) for name in ("notice", "requests")}

    @property
    def writes_edits(self) -> bool:
        """Whether the model was trained on edits, rather than to repeat the user's."""
        lease = self._own if self._settings is not None else self._fills
        return self.is_remote or _family(lease.engine) is not None

    @property
    def looks_ahead(self) -> bool:
        """Whether it may be asked ahead of time: not if requests may cost money."""
        return not self.is_remote or bool(getattr(self.engine, "is_own", False))

    async def family(self) -> Family | None:
        """The family of the model, for that family's windows, if it has one."""
        if await self._has_own():
            return _family(self.engine)
        return None if self.is_remote else _family(self._fills.engine)

    def use(self, settings: Settings) -> None:
        """Use the model for edits that the settings name, from the next rewrite on."""
        named = settings.for_edits
        if named is None or self._settings is None or named.engine_key != self._settings.engine_key:
            self._own.unload()
        self._settings, self._refused_until, self._told = named, -math.inf, ""

    async def rewrite(self, request: RewriteRequest, control: Control | None = None) -> Rewrite | None:
        """The rewrite; None if there is no engine for it. Raises as `Lease.rewrite` does."""
        is_servers = self.is_remote and request.cursor is not None  # it rewrites windows around a cursor
        if (is_servers or not self.is_remote) and await self._has_own():
            try:
                return await self._own.rewrite(request, control)
            except MercuryError as error:
                if not self.is_remote or isinstance(error, Cancelled):
                    raise
                self._pause(str(error))
            finally:
                self._count()
        if is_servers:
            return None
        return await self._fills.rewrite(request, control) if self._fills_rewrite else None

    def _count(self) -> None:
        if self.is_remote and self.engine is not None:
            uncounted: Callable[[], int] = getattr(self.engine, "uncounted", lambda: 0)
            self.count(self.engine.name, uncounted())

    def close(self) -> None:
        """Stop using an engine; returns at once."""
        self._own.close()

    @property
    def _fills_rewrite(self) -> bool:
        return self._fills.engine is not None and self._fills.engine.edit_format is not None

    async def _has_own(self) -> bool:
        """Whether the second engine is there; loads it if it fits."""
        settings = self._settings
        if settings is None or self._clock() < self._refused_until:
            return False
        if self._own.engine is not None and self.is_remote:
            return True
        if self._own.engine is not None:
            if why := memory.shortage():
                self._refuse(f"{settings.model} was unloaded: {why}")
            return not why
        try:
            engine = await self._own.load(settings)
        except Exception as error:
            return self._refuse(why_not_loaded(error), settings)
        if engine.edit_format is None:
            return self._refuse(f"{engine.name} was not trained to rewrite; name a model for edits", settings)
        if self._settings is settings:
            self.log(getattr(engine, "notice", f"next edits by {engine.name} on {engine.device}"))
        return self._settings is settings

    def _refuse(self, why: str, settings: Settings | None = None) -> bool:
        """Unload the second engine for a while, unless the settings changed meanwhile; returns False."""
        if settings is None or settings is self._settings:
            self._own.unload()
            self._pause(why)
        return False

    def _pause(self, why: str) -> None:
        """Leave the second engine alone for a while; tell the user why, once."""
        self._refused_until = self._clock() + RETRY_SECONDS
        is_other = self._fills_rewrite and not self.is_remote
        instead = "mercury.model makes the next edits" if is_other else "no model makes next edits"
        if self._told != why:
            self._told = why
            self.tell(f"mercury.editModel: {why.rstrip('.')}. Meanwhile {instead}.")


def _family(engine: InferenceEngine | None) -> Family | None:
    return None if engine is None else family_of("", engine.edit_format or "")
