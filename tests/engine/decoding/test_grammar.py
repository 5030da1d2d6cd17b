"""Grammars: a text that matches a JSON schema, whatever the model would rather write."""

import asyncio
import json
from threading import Event

import pytest
from mercury_engine.api import Fill, FillRequest, GenerateRequest, Generation, Sampling
from mercury_engine.decoding.autoregressive.grammar import Grammars
from mercury_engine.errors import RequestError

from tests.support import tiny

SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["views", "héllo"]}, "is_first": {"type": "boolean"}},
    "required": ["name", "is_first"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("model"), rank=0))


@pytest.mark.parametrize("seed", range(6))
def test_the_text_matches_the_schema(engine, seed):
    request = GenerateRequest("x", schema=json.dumps(SCHEMA), max_tokens=60, sampling=Sampling(2.0, seed=seed))
    found = engine.generate(request)
    assert found.finish_reason == "stop"
    value = json.loads(found.text)
    assert value["name"] in ("views", "héllo")
    assert value["is_first"] in (True, False)


async def test_a_fill_is_answered_while_a_schema_is_compiled(engine, monkeypatch):
    begun, filled, compiled = Event(), Event(), Grammars.of

    def slowly(grammars, schema):
        begun.set()
        assert filled.wait(60), "the fill waits for the schema"
        return compiled(grammars, schema)

    monkeypatch.setattr(Grammars, "of", slowly)
    writing = asyncio.ensure_future(engine.answer(GenerateRequest("x", schema=json.dumps(SCHEMA), max_tokens=60)))
    assert await asyncio.to_thread(begun.wait, 60)
    assert isinstance(await engine.answer(FillRequest(near="x = ", max_slots=4)), Fill)
    filled.set()
    found = await writing
    engine.close()
    assert isinstance(found, Generation)
    assert json.loads(found.text).keys() == {"name", "is_first"}


@pytest.mark.parametrize("schema", ["{", "[]", '{"type": "nonsense"}'])
def test_a_bad_schema_is_refused(engine, schema):
    with pytest.raises(RequestError, match="JSON schema cannot be used"):
        engine.generate(GenerateRequest("x", schema=schema))
    assert engine.generate(GenerateRequest("x", max_tokens=1)).tokens == 1


def test_of_a_panic_no_backtrace_reaches_the_client(engine, monkeypatch):
    class Panics:
        def __init__(self, *_, **__) -> None: ...

        grammar_from_json_schema = staticmethod(lambda *_, **__: "")

        def get_error(self) -> str:
            return "panic: index out of bounds\n  at /home/builder/src/lexer.rs:12\nstack backtrace:\n  0: main"

    monkeypatch.setattr("llguidance.LLMatcher", Panics)
    with pytest.raises(RequestError) as refused:
        engine.generate(GenerateRequest("x", schema='{"title": "panics"}', max_tokens=4))
    assert str(refused.value) == "the JSON schema cannot be used (llguidance fails on it); correct it"
