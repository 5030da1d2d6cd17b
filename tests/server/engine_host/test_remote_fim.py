"""A remote engine that is a fill-in-the-middle server: what is sent to it, and what its replies mean."""

import asyncio
import json
import math
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from mercury_engine.api import Control, FillRequest
from mercury_engine.errors import Cancelled

from mercury_lsp.engine_host.remote.dialects import UNKNOWN_CONFIDENCE
from tests.support.fake_remote import FakeRemote, Reply, Route, Sent, filled, remote, says

ASKED = FillRequest("x = é", far=("import a\n", "\n"), suffix=("\n", "print(x)\n"), lookup_text=("y\n",))

MODELS = {"GET /v1/models": says({"data": [{"id": "served-model"}]})}


def events(*bodies: Any, end: bytes = b"data: [DONE]\n\n") -> Route:
    return lambda _: (200, b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in bodies) + end)


def choice(text: str, reason: str | None = None, *nats: float) -> Any:
    return {"choices": [{"text": text, "finish_reason": reason, "logprobs": {"token_logprobs": [*nats]}}]}


async def test_llama_server_is_found_and_asked_in_its_own_dialect():
    tokens = [{"token": "f", "logprob": -0.25}, {"token": "(x)", "logprob": -0.5}]
    last = {"content": "", "stop": True, "stop_type": "word"}
    reply = events({"content": "f", "completion_probabilities": tokens[:1]}, {"content": "(x)"}, last, end=b"")
    with FakeRemote(MODELS | {"POST /infill": reply}) as server:
        engine = await remote(server.url)
        assert (engine.name, engine.backend, engine.edit_format) == ("served-model", "/infill", None)
        found = await filled(engine, ASKED)
        assert (found.text, found.is_finished, found.confidence) == ("f(x)", True, pytest.approx(math.exp(-0.25)))
        [probe, asked] = server.posted("/infill")
        assert probe["input_prefix"] == "x = " and probe["n_predict"] == 1
        assert asked == {
            "input_prefix": "import a\n\nx = é",
            "input_suffix": "\nprint(x)\n",
            "prompt": "",
            "n_predict": 32,
            "stop": ["\n"],
            "stream": True,
            "temperature": 0.0,
            "n_probs": 1,
            "cache_prompt": True,
        }
        await filled(engine, replace(ASKED, max_steps=0, deadline_ms=5000.0))
        assert server.posted("/infill")[-1]["n_predict"] == 0
        assert 2500 <= server.posted("/infill")[-1]["t_max_predict_ms"] <= 5000


async def test_mercurys_own_api_is_asked_without_its_penalty_for_repeats():
    reply = events(choice("f(x, y", None), choice(")", "stop"))
    with FakeRemote({"POST /v1/fim/completions": reply}) as server:
        engine = await remote(f"{server.url}/v1/fim/completions#mercury-coder")
        found = await filled(engine, replace(ASKED, multiline=True, effort="low"))
        assert (found.text, found.confidence) == ("f(x, y)", UNKNOWN_CONFIDENCE)
        assert engine.utility.is_enough(found.confidence, found.text, is_finished=True)
        assert [sent.path for sent in server.sent] == ["/v1/fim/completions"] * 2  # nothing else was asked
        assert server.posted("/v1/fim/completions")[-1] == {
            "model": "mercury-coder",
            "prompt": "import a\n\nx = é",
            "suffix": "\nprint(x)\n",
            "max_tokens": 16,
            "stop": ["\n\n"],
            "stream": True,
            "presence_penalty": 0.0,
        }


async def test_completions_with_a_suffix_are_found_last_and_their_probabilities_multiplied():
    reply = events(choice("f", None, -0.5), choice("()\nmore", "length", -0.25, -0.25), {"choices": [], "usage": {}})
    with FakeRemote(MODELS | {"POST /v1/completions": reply}) as server:
        engine = await remote(f"{server.url}/v1")
        found = await filled(engine, ASKED)
        assert (found.text, found.confidence, found.tokens) == ("f()", pytest.approx(math.exp(-1)), 3)
        asked = server.posted("/v1/completions")[-1]
        assert (asked["model"], asked["suffix"], asked["logprobs"]) == ("served-model", "\nprint(x)\n", 1)
        tried = [sent.path for sent in server.sent if sent.method == "POST"]
        assert tried == ["/infill", "/v1/fim/completions", "/v1/completions", "/v1/completions"]


async def test_where_no_suffix_is_taken_the_models_markers_are_written():
    def complete(sent: Sent) -> Reply:
        if "suffix" in sent.body:
            return 400, b'{"error": {"message": "suffix is not currently supported"}}'
        return events(choice("f()", "stop"))(sent) or (500, b"")

    with FakeRemote({"POST /v1/completions": complete}) as server:
        engine = await remote(f"{server.url}#Qwen/Qwen2.5-Coder-7B")
        assert (await filled(engine, ASKED)).text == "f()"
        asked = server.posted("/v1/completions")[-1]
        gap = "<|fim_prefix|>import a\n\nx = é<|fim_suffix|>\nprint(x)\n<|fim_middle|>"
        assert asked["prompt"] == gap and "suffix" not in asked
        count = len(server.sent)
        assert (await filled(engine, replace(ASKED, near='"<|fim_middle|>" + '))).text == ""
        assert (await filled(engine, replace(ASKED, max_steps=0))).text == ""
        assert len(server.sent) == count
        unknown = await remote(f"{server.url}#gpt")
        assert unknown.has_failed and "suffix is not currently supported" in unknown.notice


class Slow:
    """Sends the first words, then waits until the client has hung up."""

    def __init__(self) -> None:
        self.begun, self.hung_up = asyncio.Event(), Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        is_probe = b'"max_tokens": 1,' in await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        writer.write(b'data: {"choices": [{"text": "first(second thi"}]}\n\n')
        await writer.drain()
        if not is_probe:
            self.begun.set()
            await reader.read()
            self.hung_up.set()
        writer.close()


async def test_at_the_deadline_the_whole_words_so_far_are_the_answer_and_cancelling_hangs_up():
    slow = Slow()
    server = await asyncio.start_server(slow.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    engine = await remote(f"http://{host}:{port}/v1/fim/completions#any")
    found = await filled(engine, replace(ASKED, deadline_ms=1000.0))
    assert (found.text, found.is_finished) == ("first(second", False)
    assert await asyncio.to_thread(slow.hung_up.wait, 30)
    slow.begun.clear()
    slow.hung_up.clear()
    control = Control()
    asking = asyncio.ensure_future(filled(engine, ASKED, control))
    await slow.begun.wait()
    control.cancel.set()
    with pytest.raises(Cancelled):
        await asking
    assert await asyncio.to_thread(slow.hung_up.wait, 30) and not engine.has_failed
    server.close()


@pytest.mark.parametrize(
    "reply",
    [
        events({"error": {"message": "no memory"}}),
        events({"choices": [1]}),
        events({"choices": [{"text": "x", "logprobs": {"token_logprobs": ["high"]}}]}),
        lambda _: (200, b"data: {"),
        lambda _: (500, b"<html>"),
    ],
)
async def test_a_reply_that_is_not_understood_is_answered_here(reply: Route):
    good = events(choice("f", "stop"))
    replies = [good, reply]
    with FakeRemote({"POST /v1/fim/completions": lambda sent: replies.pop(0)(sent)}) as server:
        engine = await remote(f"{server.url}/v1/fim/completions#any")
        assert (await filled(engine, ASKED)).text == "local" and engine.has_failed
