"""What came of something, put where somebody waits for it."""

import asyncio
from typing import Any


def put(outcome: Any, answer: "asyncio.Future[Any]") -> None:
    """Errors are raised there; nothing happens if nobody waits any more."""
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
