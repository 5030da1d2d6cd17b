"""Fills for commands, which have no event loop and may wait."""

import asyncio

from mercury_engine.api import Control, Fill, FillRequest, InferenceEngine, Rewrite, RewriteRequest


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
