"""`/v1/chat/completions` as the SDKs of OpenAI and Inception call it, with tools, formats and streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from mercury_engine.api import Chat, Sampling, TokenLogProbability

from tests.support import masked, tiny
from tests.support.fake_engine import FakeEngine, begun
from tests.support.http_server import Served, served

ROUTE = "/v1/chat/completions"

HELLO = {"messages": [{"role": "user", "content": "hello"}]}

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

TIME = {"type": "function", "function": {"name": "time"}}

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'


class Chatting(FakeEngine):
    """Replies with its parts."""

    chat_format = "tool_call"

    def __init__(self, *parts: str):
        super().__init__()
        self.parts = parts or ("Hi", " there")


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served(Chatting()) as made:
        yield made


async def test_the_sdks_get_a_reply_with_its_usage(server: Served):
    theirs = await server.inception.chat.completions.create(model="mercury-2", **HELLO)
    found = await server.openai.chat.completions.create(model="gpt", **HELLO)
    for reply in (theirs, found):
        assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("Hi there", "stop")
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (7, 2, 9)
        assert reply.usage.prompt_tokens_details.cached_tokens == 4
    usage = (await server.json(ROUTE, HELLO))["usage"]
    assert (usage["cached_input_tokens"], usage["reasoning_tokens"]) == (4, 0)


async def test_the_sdks_stream_a_reply_with_its_usage_at_the_end(server: Served):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    for stream in (
        await server.inception.chat.completions.create(model="mercury-2", **HELLO, **options),
        await server.openai.chat.completions.create(model="gpt", **HELLO, **options),
    ):
        chunks = [chunk async for chunk in stream]
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == "Hi there"
        assert [delta.role for delta in deltas if delta.role] == ["assistant"]
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert dict(chunks[-1].usage)["total_tokens"] == 9


async def test_ollamas_clients_chat(server: Served):
    body = HELLO | {"model": "any", "options": {"temperature": 0.2, "top_k": 7, "num_predict": 9, "stop": ["x"]}}
    lines = await server.events("/api/chat", body)
    whole = await server.json("/api/chat", body | {"stream": False})
    [loading] = await server.events("/api/chat", {"model": "any"})
    assert "".join(line["message"]["content"] for line in lines) == "Hi there"
    assert [line["done"] for line in lines[-2:]] == [False, True] and lines[-1]["eval_count"] == 2
    assert whole["message"] == {"role": "assistant", "content": "Hi there"} and whole["done_reason"] == "stop"
    assert loading["done_reason"] == "load"
    asked = server.engine.generating[0]
    assert (asked.max_tokens, asked.stop, asked.sampling.temperature, asked.sampling.top_k) == (9, ("x",), 0.2, 7)
    assert "chat" in (await server.json("/api/show", {"model": "any"}))["capabilities"]


async def test_long_replies_leave_the_engine_a_place_for_fills(server: Served):
    server.engine.held = True
    bodies = [HELLO | {"seed": seed, "options": {"seed": seed}, "stream": False} for seed in range(3)]
    asking = [asyncio.ensure_future(server.json(route, body)) for body in bodies for route in (ROUTE, "/api/chat")]
    while len(server.engine.generating) < 3:
        await asyncio.sleep(0.001)
    asking.append(asyncio.ensure_future(server.json("/infill", {"prompt": "x = ", "input_suffix": ")"})))
    await begun(server.engine)
    assert len(server.engine.generating) == 3
    server.engine.held = False
    await asyncio.gather(*asking)
    assert len(server.engine.generating) == 6


async def test_what_the_client_asks_for_reaches_the_engine(server: Served):
    body = HELLO | {
        "max_tokens": 9,
        "max_completion_tokens": 5,
        "temperature": 0.3,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "presence_penalty": 1.5,
        "frequency_penalty": 0.5,
        "repetition_penalty": 1.1,
        "seed": 3,
        "stop": "END",
        "reasoning_effort": "low",
    }
    await server.json(ROUTE, body)
    [asked] = server.engine.generating
    assert asked.chat == Chat(tuple(HELLO["messages"]), thinks=False)
    assert (asked.max_tokens, asked.stop, asked.schema) == (5, ("END",), None)
    assert asked.sampling == Sampling(0.3, 0.9, 40, 0.1, 1.1, 1.5, 0.5, 3)


async def test_calls_of_tools_are_read_from_the_reply(server: Served):
    server.engine.parts = ("Let me see. ", CALL, CALL.replace("Rome", "Oslo"))
    found = await server.inception.chat.completions.create(model="m", tools=[WEATHER], **HELLO)
    [choice] = found.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me see.")
    assert [json.loads(call.function.arguments)["city"] for call in choice.message.tool_calls] == ["Rome", "Oslo"]
    assert server.engine.generating[0].chat.tools == (WEATHER,)


async def test_a_demanded_call_is_begun_and_follows_the_tools_schema(server: Served):
    server.engine.parts = ('{"city": "Rome"}',)
    choice = {"type": "function", "function": {"name": "weather"}}
    [found] = (await server.json(ROUTE, HELLO | {"tools": [TIME, WEATHER], "tool_choice": choice}))["choices"]
    assert found["message"]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Rome"}'}
    [asked] = server.engine.generating
    assert asked.chat.reply == '<tool_call>\n{"name": "weather", "arguments": '
    assert json.loads(asked.schema) == WEATHER["function"]["parameters"]
    server.engine.parts = ('{"name": "time", "arguments": {}}',)
    [found] = (await server.json(ROUTE, HELLO | {"tools": [TIME, WEATHER], "tool_choice": "required"}))["choices"]
    assert found["message"]["tool_calls"][0]["function"]["name"] == "time"
    calls = json.loads(server.engine.generating[1].schema)["anyOf"]
    assert [each["properties"]["name"]["const"] for each in calls] == ["time", "weather"]


async def test_response_formats_are_schemas(server: Served):
    schema = {"type": "object", "properties": {}}
    formats = (
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}},
    )
    for each in formats:
        await server.json(ROUTE, HELLO | {"response_format": each})
    schemas = [asked.schema and json.loads(asked.schema) for asked in server.engine.generating]
    assert schemas == [None, {"type": "object"}, schema]


async def test_log_probabilities_come_token_by_token(monkeypatch: pytest.MonkeyPatch, server: Served):
    others = TokenLogProbability("é", -0.5, (0xC3, 0xA9)), TokenLogProbability("\ufffd", float("-inf"), (0xC3,))
    told = (TokenLogProbability("é", -0.5, (0xC3, 0xA9), others),)
    made = replace(Chatting().generation, log_probabilities=told)
    monkeypatch.setattr(Chatting, "generation", property(lambda _: made))
    found = await server.openai.chat.completions.create(model="m", logprobs=True, top_logprobs=2, **HELLO)
    [token] = found.choices[0].logprobs.content
    assert (token.token, token.logprob, bytes(token.bytes)) == ("é", -0.5, "é".encode())
    assert [each.logprob for each in token.top_logprobs] == [-0.5, -9999.0]
    assert token.top_logprobs[1].bytes == [0xC3]
    assert server.engine.generating[0].alternatives == 2
    await server.json(ROUTE, HELLO)
    assert server.engine.generating[1].alternatives is None


async def test_a_model_chats_by_its_template(tmp_path):
    folder = tiny.folder(tmp_path, rank=0, markers=("<|im_start|>", "<|im_end|>"))
    source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    (folder / "chat_template.jinja").write_text(source)
    async with served(tiny.load(folder)) as server:
        body = HELLO | {"max_tokens": 12, "seed": 1, "temperature": 0.5}
        first, again = [await server.json(ROUTE, body) for _ in range(2)]
        events = await server.events(ROUTE, body | {"stream": True})
        json_reply = await server.json(ROUTE, body | {"response_format": {"type": "json_object"}, "max_tokens": 400})
    text = first["choices"][0]["message"]["content"]
    assert again["choices"][0]["message"]["content"] == text
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]) == text
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == again["usage"]["prompt_tokens"] - 1
    if json_reply["choices"][0]["finish_reason"] == "stop":
        assert isinstance(json.loads(json_reply["choices"][0]["message"]["content"]), dict)


TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.mark.parametrize("family", ["A2D-qwen3", "SDAR"])
async def test_what_a_diffusion_model_streams_adds_up_to_its_text(family: str, tmp_path):
    folder, _ = masked.folder(tmp_path, family)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    body = HELLO | {"max_tokens": 12, "temperature": 0}
    async with served(tiny.load(folder)) as server:
        whole = (await server.json(ROUTE, body))["choices"][0]["message"]["content"]
        events = await server.events(ROUTE, body | {"stream": True})
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]) == whole
