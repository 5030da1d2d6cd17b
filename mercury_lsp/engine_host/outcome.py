"""Delivers the outcome of a request to the future that waits for it."""

import asyncio
from typing import Any


def deliver(outcome: Any, answer: "asyncio.Future[Any]") -> None:
    """Set the future's result, or its exception if the outcome is one; nothing if the future is done."""
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
