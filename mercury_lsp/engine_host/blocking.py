"""Fills for commands, which have no event loop and may wait."""

import asyncio

from mercury_engine.api import Answer, Control, Fill, FillRequest, InferenceEngine


def filled(engine: InferenceEngine, request: FillRequest, control: Control | None = None) -> Fill:
    """The fill. Raises what the engine raises."""
    answer = asyncio.run(_answer(engine, request, control or Control()))
    assert isinstance(answer, Fill)
    return answer


async def _answer(engine: InferenceEngine, request: FillRequest, control: Control) -> Answer:
    return await engine.answer(request, control)
