"""`/v1/fim/completions` as Mercury's SDK, Continue and minuet call it, and `/infill` as llama.cpp's clients do."""

import asyncio

import httpx
import pytest
from mercury_engine.api import Fill, FillRequest

from mercury_lsp.settings import Settings
from tests.support.fake_engine import begun
from tests.support.http_server import Scripted, served

QUICKSORT = {"= ": "items[0]", "items[0]\n": "    return items", "items\n": ""}


async def test_the_sdk_gets_a_completion_with_its_usage():
    async with served() as server:
        found = await server.inception.fim.completions.create(model="mercury-coder", prompt="x = ", suffix="\ny = 1\n")
    assert (found.choices[0].text, found.choices[0].finish_reason, found.model) == ("suggested", "stop", "fake")
    usage = found.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (8, 2, 10)
    assert usage.prompt_tokens_details.cached_tokens == 5


async def test_the_sdk_streams_a_completion_with_its_usage_at_the_end():
    async with served(Scripted(QUICKSORT)) as server:
        stream = await server.inception.fim.completions.create(
            model="mercury-coder", prompt="x = ", stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == "items[0]\n    return items"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == [] and len(chunks) > 3


async def test_without_a_suffix_it_writes_one_paragraph_unless_told_where_to_stop():
    async with served(Scripted(QUICKSORT | {"\n\n": "after()", "after()\n": ""})) as server:
        one = await server.json("/v1/fim/completions", {"prompt": "x = "})
        all_of_it = await server.json("/v1/fim/completions", {"prompt": "x = ", "stop": "after()"})
        line = await server.json("/v1/fim/completions", {"prompt": "x = ", "stop": ["\n"]})
    assert one["choices"][0]["text"] == "items[0]\n    return items"
    assert all_of_it["choices"][0]["text"] == "items[0]\n    return items\n\n"
    assert line["choices"][0]["text"] == "items[0]"


@pytest.mark.parametrize(("steps", "reason"), [(1, "stop"), (0, "length")])
@pytest.mark.parametrize("timed", [{}, {"t_max_predict_ms": 60_000}])
async def test_a_text_ends_where_the_model_adds_nothing_but_not_where_time_is_up(steps: int, reason: str, timed):
    class Ending(Scripted):
        def fill(self, request: FillRequest) -> Fill:
            cut_off = Fill("", 1.0, steps, 0.0, tokens=3)
            return cut_off if request.near.endswith("\n") else super().fill(request)

    async with served(Ending({"= ": "1"})) as server:
        [choice] = (await server.json("/v1/fim/completions", {"prompt": "x = ", "stop": ["END"]} | timed))["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("1", reason)


async def test_the_first_of_several_whole_texts_has_ended_by_itself():
    async with served(Scripted({"= ": ("1", "2")})) as server:
        first = (await server.json("/v1/completions", {"prompt": "x = ", "n": 2}))["choices"][0]
    assert (first["text"], first["finish_reason"]) == ("1", "stop")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/v1/fim/completions", "/infill", "/api/generate", "/mercury/v1/steps"])
async def test_a_closed_connection_stops_the_fill(path: str, stream: bool):
    async with served() as server:
        server.engine.held = True
        asking = asyncio.ensure_future(server.post(path, {"prompt": "x = ", "stream": stream}))
        await begun(server.engine)
        asking.cancel()
        [control] = server.engine.controls
        assert await asyncio.to_thread(control.cancel.wait, 30)


async def test_the_newest_request_of_a_slot_ends_the_older_one():
    async with served() as server:
        server.engine.held = True
        older = asyncio.ensure_future(server.json("/infill", {"input_prefix": "x", "input_suffix": ")", "id_slot": 0}))
        await begun(server.engine)
        newer = asyncio.ensure_future(server.json("/infill", {"input_prefix": "xy", "id_slot": 0}))
        assert (await older)["content"] == ""
        server.engine.held = False
        assert (await newer)["content"] == "suggested"


async def test_infill_reads_the_line_and_the_other_files():
    body = {
        "input_prefix": "import shapes\n",
        "prompt": "x = shapes.",
        "input_suffix": "\nprint(x)\n",
        "input_extra": [{"text": "def area(width): ...\n", "filename": "shapes.py"}],
        "n_predict": 12,
        "t_max_predict_ms": 250,
        "samplers": ["top_k", "top_p", "infill"],
        "response_fields": ["content", "timings/predicted_n", "truncated", "no/such"],
    }
    async with served() as server:
        found = await server.json("/infill", body)
        [asked] = server.engine.asked
    assert found == {"content": "suggested", "timings/predicted_n": 2, "truncated": False}
    assert asked.near == "import shapes\nx = shapes." and "".join(asked.suffix) == "\nprint(x)\n"
    assert asked.far == ("# shapes.py\n", "def area(width): ...\n")
    assert asked.max_slots == 12


async def test_the_models_are_what_the_sdks_expect():
    async with served() as server:
        for path in ("list", "list_fim"):
            lists = server.inception.models
            found = await getattr(lists, path, lists.list)()
            assert [model.id for model in found.data] == ["fake"]
        assert [model.id async for model in server.openai.models.list()] == ["fake"]
        assert (await server.openai.models.retrieve("fake")).id == "fake"


async def test_secrets_are_cut_and_a_line_that_is_one_is_not_completed():
    secret = 'AWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYz8Kq0pLm4v"'
    extra = [
        {"text": "DB=postgres://u:hunter2secret@db/x\n", "filename": ".env"},
        {"text": "y = 1\n", "filename": "y.py"},
    ]
    async with served() as server:
        await server.json("/v1/fim/completions", {"prompt": f"{secret}\nx = ", "suffix": "\nprint(x)\n"})
        await server.json("/infill", {"prompt": "x = ", "input_extra": extra})
        on_secret = await server.json("/v1/fim/completions", {"prompt": secret[:-3]})
        seen = " ".join(str(asked) for asked in server.engine.asked)
    assert "wJalr" not in seen and "hunter2" not in seen and "y = 1" in seen
    assert on_secret["choices"][0] | {"message": None} == {
        "index": 0,
        "text": "",
        "message": None,
        "finish_reason": "content_filter",
        "logprobs": None,
    }


async def test_a_full_queue_is_told_with_the_time_to_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mercury_lsp.http.service.MAX_OPEN", 1)
    async with served() as server:
        server.engine.held = True
        asking = asyncio.ensure_future(server.json("/v1/fim/completions", {"prompt": "x = "}))
        await begun(server.engine)
        refused = await server.post("/v1/fim/completions", {"prompt": "y = "})
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert refused.json()["error"]["code"] == "rate_limit_reached"
        server.engine.held = False
        assert (await asking)["choices"][0]["text"] == "suggested"


async def test_a_model_that_cannot_be_loaded_is_told_and_tried_again():
    from mercury_engine.errors import ModelNotFound

    loads = []

    def load(settings):
        loads.append(settings)
        if len(loads) < 3:
            raise ModelNotFound("no model called missing; run mercury-lsp models list")
        return Scripted()

    async with served(load=load) as server:
        while not loads:
            await asyncio.sleep(0)
        refused: httpx.Response = await server.post("/v1/fim/completions", {"prompt": "x = "})
        assert refused.status_code == 503 and "no model called missing" in refused.json()["error"]["message"]
        found = await server.post("/v1/fim/completions", {"prompt": "x = "})
        assert found.status_code == 200


async def test_fills_wait_while_an_editor_is_answered():
    async with served() as server:
        server.engine.held = True
        typing = server.engines.lease()
        await typing.load(Settings())
        editing = asyncio.ensure_future(typing.answer(FillRequest(near="typed")))
        await begun(server.engine)
        bodies = [{"prompt": f"x{number} = ", "input_suffix": ")"} for number in range(3)]
        asking = [asyncio.ensure_future(server.json("/infill", body)) for body in bodies]
        while "completions_under_way 3.0" not in (await server.client.get("/metrics")).text:
            await asyncio.sleep(0)
        assert server.engine.asked_near == ["typed"]
        server.engine.held = False
        await editing
        assert [(await each)["content"] for each in asking] == ["suggested"] * 3


async def test_a_fill_gives_way_to_an_editors_request_and_begins_again():
    async with served() as server:
        typing = server.engines.lease()
        await typing.load(Settings())
        await typing.answer(FillRequest(near="typed"))
        server.engine.begun.clear()
        server.engine.held = True
        asking = asyncio.ensure_future(server.json("/infill", {"prompt": "x = ", "input_suffix": ")"}))
        await begun(server.engine)
        editing = asyncio.ensure_future(typing.answer(FillRequest(near="typed on")))
        assert await asyncio.to_thread(server.engine.controls[1].cancel.wait, 30)
        server.engine.held = False
        await editing
        assert (await asking)["content"] == "suggested"
        assert server.engine.asked_near.count("x = ") == 2
