"""Generation: what a model writes from left to right after a prompt, with the cache, drafts, limits and streaming."""

import asyncio
from collections.abc import Mapping

import pytest
from mercury_engine.api import Control, FillRequest, GenerateRequest
from mercury_engine.decoding.autoregressive.generating import PREFILLED_AT_ONCE
from mercury_engine.errors import PromptTooLong, RequestError
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.scripted_network import ScriptedNetwork, writes
from tests.support.scripted_network import engine as scripted_engine

PROMPT = "def views(self, names):\n"

TEXT = "    found = self.views[name]\n    found = self.views[name]\n    return found\n"

END = 0
"""The token that ends a text."""


@pytest.fixture
def scripted(tmp_path) -> tuple[Engine, ScriptedNetwork]:
    """An engine whose model writes TEXT after PROMPT and ends it."""
    engine, network = scripted_engine(tmp_path, tiny.QWEN_MARKERS)
    network.script = writes(engine.tokenizer, TEXT, {END: 0.99}, engine.tokenizer.encode(PROMPT))
    return engine, network


def tokens(engine: Engine, text: str) -> int:
    return len(engine.tokenizer.encode(text))


def test_it_writes_no_more_tokens_than_asked_for(scripted):
    engine, _ = scripted
    for most in (1, 5, 12):
        found = engine.generate(GenerateRequest(PROMPT, max_tokens=most))
        assert (found.tokens, found.finish_reason) == (most, "length")
        assert TEXT.startswith(found.text)


@pytest.mark.parametrize("stop", ["self.", "\n    ret", "iews[name]\n  ", "found\n"])
def test_it_ends_before_a_stop_text(scripted, stop):
    engine, _ = scripted
    parts: list[str] = []
    found = engine.generate(GenerateRequest(PROMPT, stop=("nowhere", stop)), Control(on_text=parts.append))
    assert (found.text, found.finish_reason) == (TEXT[: TEXT.index(stop)], "stop")
    assert "".join(parts) == found.text


def test_the_parts_that_are_told_make_up_the_text(scripted):
    engine, _ = scripted
    parts: list[str] = []
    engine.generate(GenerateRequest(PROMPT, stop=("found\n\n",)), Control(on_text=parts.append))
    assert len(parts) > 5
    assert "".join(parts) == TEXT


def test_a_longer_prompt_with_the_same_beginning_is_not_read_again(scripted):
    engine, network = scripted
    network.script = lambda before: {END: 0.99}
    lines = [f"value_{number} = {number}\n" for number in range(120)]
    first = engine.generate(GenerateRequest("".join(lines)))
    assert first.prompt_tokens > PREFILLED_AT_ONCE
    assert max(rows for rows in network.passes for rows in rows) <= PREFILLED_AT_ONCE
    longer = engine.generate(GenerateRequest("".join([*lines, "x = 1\n"])))
    assert longer.cached_tokens >= first.prompt_tokens - 2


def test_prompts_leave_the_cache_of_fills_alone(scripted):
    engine, network = scripted
    network.script = lambda before: {END: 0.99}
    gap = FillRequest(near="import os\n\n\ndef f(x", max_slots=2)
    engine.fill(gap)
    for number in range(4):
        engine.generate(GenerateRequest(f"{number} another text"))
    assert engine.fill(gap).tokens_read == 0


def test_text_of_a_user_is_never_a_special_token(scripted):
    engine, network = scripted
    seen: list[list[int]] = []

    def script(before: list[int]) -> Mapping[int, float]:
        seen.append(before)
        return {END: 0.99}

    network.script = script
    marker = engine.tokenizer.markers.middle[0]
    engine.generate(GenerateRequest("a <|fim_middle|> b"))
    assert marker not in seen[-1]
    engine.generate(GenerateRequest("a <|fim_middle|> b", marked=True))
    assert seen[-1][1:] == [*engine.tokenizer.encode("a "), marker, *engine.tokenizer.encode(" b")]


def test_a_prompt_longer_than_the_context_is_refused(tmp_path):
    engine = tiny.load(tiny.folder(tmp_path, rank=0, max_position_embeddings=16))
    with pytest.raises(PromptTooLong, match=r"at most 15; shorten it"):
        engine.generate(GenerateRequest("x = 1\n" * 20))
    found = engine.generate(GenerateRequest("x = "))
    assert found.prompt_tokens + found.tokens <= 16


def test_a_diffusion_model_says_that_it_generates_no_text(tmp_path):
    engine = tiny.load(tiny.folder(tmp_path))
    with pytest.raises(RequestError, match="choose another"):
        engine.generate(GenerateRequest(PROMPT))


async def test_generations_and_fills_share_passes(scripted):
    engine, network = scripted
    alone = engine.generate(GenerateRequest(PROMPT))
    network.passes.clear()
    answers = await asyncio.gather(*(engine.answer(GenerateRequest(PROMPT)) for _ in range(3)))
    engine.close()
    assert [each.text for each in answers] == [alone.text] * 3
    assert sum(map(len, network.passes)) > len(network.passes)
