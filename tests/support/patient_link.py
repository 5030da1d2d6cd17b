"""Makes links wait for a pong as long as it takes, so that a busy machine is no daemon that hangs."""

from collections.abc import Callable
from select import select
from typing import Any

from mercury_lsp.relay import link
from tests.support.editor import PATIENCE


def await_pongs(replace: Callable[[object, str, object], None] = setattr) -> None:
    """After a ping, a link polls once, for `PATIENCE` seconds, until anything comes from the daemon."""
    pinged: set[int] = set()
    ping = link.Link._ping

    def noted(self: link.Link) -> None:
        pinged.add(self._connection.fileno())
        ping(self)

    def patient(reading: Any, writing: Any, failing: Any, seconds: float) -> Any:
        descriptor = reading[0].fileno() if reading else -1
        found = select(reading, writing, failing, PATIENCE if descriptor in pinged else seconds)
        if found[0]:
            pinged.discard(descriptor)
        return found

    replace(link.Link, "_ping", noted)
    replace(link, "select", patient)
