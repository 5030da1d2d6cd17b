"""`/v1/chat/completions` as the SDKs of OpenAI and Inception call it, with tools, formats and streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import openai
import pytest
from inceptionai import AsyncInception
from mercury_engine.api import (
    Answer,
    Chat,
    Control,
    Generation,
    RegionHunk,
    Request,
    Rewrite,
    RewriteRequest,
    Sampling,
    TokenLogProbability,
)
from mercury_engine.errors import PromptTooLong

from mercury_lsp.http import generations
from mercury_lsp.http.tool_calls import ToolUse
from tests.support import masked, tiny
from tests.support.fake_engine import FakeEngine
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


def sdk(server: Served) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="any", base_url=f"{server.url}/v1", max_retries=0)


def inception(server: Served) -> AsyncInception:
    return AsyncInception(api_key="any", base_url=server.url, max_retries=0)


async def test_the_sdks_get_a_reply_with_its_usage(server: Served):
    theirs = await inception(server).chat.completions.create(model="mercury-2", **HELLO)
    found = await sdk(server).chat.completions.create(model="gpt", **HELLO)
    for reply in (theirs, found):
        assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("Hi there", "stop")
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (7, 2, 9)
        assert reply.usage.prompt_tokens_details.cached_tokens == 4
    usage = (await server.json(ROUTE, HELLO))["usage"]
    assert (usage["cached_input_tokens"], usage["reasoning_tokens"]) == (4, 0)


async def test_the_sdks_stream_a_reply_with_its_usage_at_the_end(server: Served):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    for stream in (
        await inception(server).chat.completions.create(model="mercury-2", **HELLO, **options),
        await sdk(server).chat.completions.create(model="gpt", **HELLO, **options),
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


async def test_the_openai_helper_puts_a_stream_together(server: Served):
    server.engine.parts = ("It is ", CALL)
    async with sdk(server).chat.completions.stream(model="gpt", tools=[WEATHER], **HELLO) as stream:
        found = await stream.get_final_completion()
    message = found.choices[0].message
    assert message.content.strip() == "It is"
    assert (message.tool_calls[0].function.name, found.choices[0].finish_reason) == ("weather", "tool_calls")
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "Rome"}


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


async def test_no_tokens_only_read_the_messages(server: Served):
    for name in ("max_tokens", "n_predict"):
        await server.json(ROUTE, HELLO | {name: 0})
    assert [asked.max_tokens for asked in server.engine.generating] == [0, 0]
    await server.json(ROUTE, HELLO | {"n_predict": -1})
    assert server.engine.generating[-1].max_tokens is None


async def test_several_choices_have_seeds_of_their_own(server: Served):
    found = await server.json(ROUTE, HELLO | {"n": 3, "seed": 5})
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2]
    assert [asked.sampling.seed for asked in server.engine.generating] == [5, 6, 7]
    assert found["usage"]["completion_tokens"] == 6


async def test_calls_of_tools_are_read_from_the_reply(server: Served):
    server.engine.parts = ("Let me see. ", CALL, CALL.replace("Rome", "Oslo"))
    found = await inception(server).chat.completions.create(model="m", tools=[WEATHER], **HELLO)
    [choice] = found.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me see.")
    assert [json.loads(call.function.arguments)["city"] for call in choice.message.tool_calls] == ["Rome", "Oslo"]
    assert server.engine.generating[0].chat.tools == (WEATHER,)


@pytest.mark.parametrize("text", ['{"name": "weather", "arguments": {}}', f"{CALL[:-13]}"])
async def test_a_call_without_its_marks_is_one_too(server: Served, text: str):
    server.engine.parts = (text,)
    [choice] = (await server.json(ROUTE, HELLO | {"tools": [WEATHER]}))["choices"]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"


NO_CALLS = {
    "an unknown tool": '{"name": "unknown", "arguments": {}}',
    "no JSON": "<tool_call>nothing",
    "no name": '{"a": 1}',
    "a name in parts": '{"name": {"first": "Ada"}}',
    "a list": "[1]",
    "brackets without an end": "[" * 100_000,
}


@pytest.mark.parametrize("tools", [[], [WEATHER]], ids=["without tools", "with tools"])
@pytest.mark.parametrize("text", NO_CALLS.values(), ids=NO_CALLS)
async def test_what_is_no_call_of_a_known_tool_stays_text(server: Served, text: str, tools: list):
    server.engine.parts = (text,)
    [choice] = (await server.json(ROUTE, HELLO | {"tools": tools}))["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (text, "stop")
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("begin", ["", "\n\n"])
async def test_a_stream_never_shows_the_text_of_a_call(server: Served, begin: str):
    server.engine.parts = (begin, "One moment. <tool", '_call>\n{"name": "wea', 'ther", "arguments": {}}\n</tool_call>')
    events = await server.events(ROUTE, HELLO | {"tools": [WEATHER], "stream": True})
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas).strip() == "One moment."
    assert [delta["tool_calls"][0]["index"] for delta in deltas if "tool_calls" in delta] == [0]


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
    assert [
        each["properties"]["name"]["const"] for each in json.loads(server.engine.generating[1].schema)["anyOf"]
    ] == [
        "time",
        "weather",
    ]


async def test_without_a_choice_of_tools_the_model_does_not_see_them(server: Served):
    await server.json(ROUTE, HELLO | {"tools": [WEATHER], "tool_choice": "none"})
    assert server.engine.generating[0].chat.tools == ()


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
    found = await sdk(server).chat.completions.create(model="m", logprobs=True, top_logprobs=2, **HELLO)
    [token] = found.choices[0].logprobs.content
    assert (token.token, token.logprob, bytes(token.bytes)) == ("é", -0.5, "é".encode())
    assert [each.logprob for each in token.top_logprobs] == [-0.5, -9999.0]
    assert token.top_logprobs[1].bytes == [0xC3]
    assert server.engine.generating[0].alternatives == 2
    await server.json(ROUTE, HELLO)
    assert server.engine.generating[1].alternatives is None


BAD = {
    "no message": ({"messages": []}, "messages"),
    "a message without a role": ({"messages": [{"content": "x"}]}, "messages"),
    "a message that is none": ({"messages": ["x"]}, "messages"),
    "a picture": ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages"),
    "a temperature below 0": (HELLO | {"temperature": -1}, "temperature"),
    "top_p beyond 1": (HELLO | {"top_p": 1.5}, "top_p"),
    "an unknown format": (HELLO | {"response_format": {"type": "xml"}}, "response_format"),
    "a schema that is none": (
        HELLO | {"response_format": {"type": "json_schema", "json_schema": {}}},
        "response_format",
    ),
    "a tool without a name": (HELLO | {"tools": [{"type": "function"}]}, "tools"),
    "a choice that is no tool": (
        HELLO | {"tools": [WEATHER], "tool_choice": {"function": {"name": "x"}}},
        "tool_choice",
    ),
    "a choice without tools": (HELLO | {"tool_choice": "required"}, "tool_choice"),
    "several streams": (HELLO | {"n": 2, "stream": True}, "n"),
}


@pytest.mark.parametrize(("body", "field"), BAD.values(), ids=BAD)
async def test_bad_requests_name_the_field(server: Served, body: dict, field: str):
    reply = await server.post(ROUTE, body)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"].startswith(field)
    assert not server.engine.generating


async def test_a_model_without_tools_says_so(server: Served):
    server.engine.chat_format = "plain"
    reply = await server.post(ROUTE, HELLO | {"tools": [WEATHER]})
    assert "was not trained to call tools" in reply.json()["error"]["message"]
    assert (await server.post(ROUTE, HELLO)).status_code == 200


async def test_too_long_a_prompt_has_its_code(monkeypatch: pytest.MonkeyPatch, server: Served):
    def refuse(engine: Chatting) -> Generation:
        raise PromptTooLong("too long")

    monkeypatch.setattr(Chatting, "generation", property(refuse))
    server.engine.parts = ()
    for stream in (False, True):
        error = (await server.post(ROUTE, HELLO | {"stream": stream})).json()["error"]
        assert (error["message"], error["code"]) == ("too long", "context_length_exceeded")


async def test_a_client_that_leaves_stops_its_reply(server: Served):
    server.engine.held = True
    for stream in (False, True):
        with pytest.raises(httpx.ReadTimeout):
            await server.client.post(ROUTE, json=HELLO | {"stream": stream}, timeout=0.3)
    for control in server.engine.generation_controls:
        assert await asyncio.to_thread(control.cancel.wait, 10)


async def test_more_than_can_wait_are_refused(monkeypatch: pytest.MonkeyPatch, server: Served):
    monkeypatch.setattr(generations, "MAX_WRITING", 0)
    reply = await server.post(ROUTE, HELLO)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")


DUET = """\
<edit_history>
User edited "a.py":
@@ -1 +1 @@
-x = 1
+count = 1
</edit_history>

count = 1
<editable_region>
y = x<cursor_position/>
z = x
</editable_region>
print(z)
"""

TAGS = """\
<|current_file_content|>
current_file_path: a.py
x = 1
<|code_to_edit|>
y = x<|cursor|>
<|/code_to_edit|>
<|/current_file_content|>
"""


class Editing(Chatting):
    """Rewrites x as count."""

    edit_format = "scripted"

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        if not isinstance(request, RewriteRequest):
            return await super().answer(request, control)
        self.rewriting = request
        lines = request.text.splitlines(keepends=True)
        hunks = [
            RegionHunk(number, number + 1, line.replace("x", "count"), 0.9)
            for number, line in enumerate(lines)
            if "x" in line
        ]
        text = request.text.replace("x", "count")
        return Rewrite(text, 2, 0.01, is_finished=True, tokens_read=5, hunks=tuple(hunks))


async def test_a_next_edit_asked_for_in_duets_markers_is_the_edit_engines():
    async with served(Editing()) as server:
        body = {"messages": [{"role": "user", "content": DUET}]}
        found = await sdk(server).chat.completions.create(model="m", **body)
        events = await server.events(ROUTE, body | {"stream": True})
        request = server.engine.rewriting
    text = found.choices[0].message.content
    assert text == "<editable_region>\ny = count\nz = count<cursor_position/>\n</editable_region>"
    assert events[0]["choices"][0]["delta"]["content"] == text
    assert [(hunk.removed, hunk.inserted) for hunk in request.history] == [("x = 1\n", "count = 1\n")]
    assert (request.path, request.text) == ("a.py", "y = x\nz = x\n")
    assert not server.engine.generating


async def test_a_next_edit_asked_for_in_mercurys_tags_is_the_edit_engines():
    async with served(Editing()) as server:
        found = await server.json(ROUTE, {"messages": [{"role": "user", "content": TAGS}]})
    assert found["choices"][0]["message"]["content"] == "y = count\n"


async def test_without_a_model_for_edits_a_chat_model_answers_itself(server: Served):
    found = await server.json(ROUTE, {"messages": [{"role": "user", "content": DUET}]})
    assert found["choices"][0]["message"]["content"] == "Hi there"


async def test_only_models_that_chat_are_listed_for_chat(server: Served):
    listed = await inception(server).models.list_chat()
    assert "chat.completions" in listed.data[0].supported_endpoints
    server.engine.chat_format = None
    assert (await server.client.get("/v1/chat/completions/models")).json()["data"] == []
    assert "chat.completions" not in (await server.client.get("/v1/models")).json()["data"][0]["supported_endpoints"]


SETTLED = {
    "text": ("Hello wor", "Hello wor"),
    "a beginning of a call": ("Hello <tool_", "Hello"),
    "a call": (f"Hello {CALL}", "Hello"),
    "a call without marks": (' {"name', ""),
    "nothing yet": (" ", ""),
}


@pytest.mark.parametrize(("text", "shown"), SETTLED.values(), ids=SETTLED)
def test_only_what_is_surely_no_call_is_shown(text: str, shown: str):
    assert ToolUse((WEATHER,)).settled(text) == shown
    assert ToolUse().settled(text) == text
    assert ToolUse((WEATHER,), ("weather",)).settled(text) == ""


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
