"""`/v1/completions` with its detections, Tabby, llama.cpp's `/completion`, Ollama, and the figures of all."""

import pytest

from mercury_lsp.http.gap import Gap, OtherText
from mercury_lsp.http.templates import taken_apart
from tests.support.http_server import served


async def test_the_openai_package_gets_a_completion_and_a_stream():
    async with served() as server:
        whole = await server.openai.completions.create(
            model="qwen", prompt="x = ", suffix="\ny", max_tokens=9, temperature=0.2
        )
        assert (whole.choices[0].text, whole.choices[0].finish_reason) == ("suggested", "stop")
        assert whole.usage is not None and whole.usage.total_tokens == 10
        stream = await server.openai.completions.create(model="qwen", prompt="x = ", suffix="\nz", stream=True, n=1)
        assert "".join([chunk.choices[0].text async for chunk in stream]) == "suggested"
        assert server.engine.asked[0].max_slots == 9


QWEN = "<|repo_name|>shop\n<|file_sep|>shapes.py\ndef area(): ...\n<|file_sep|>main.py\n"


@pytest.mark.parametrize(
    ("prompt", "path", "others"),
    [
        ("<|fim_prefix|>x = <|fim_suffix|>\ny = 1<|fim_middle|>", "", ()),
        (
            f"{QWEN}<|fim_prefix|>x = <|fim_suffix|>\ny = 1<|fim_middle|>",
            "main.py",
            (OtherText("def area(): ...\n", "shapes.py"),),
        ),
        ("<fim_prefix>x = <fim_suffix>\ny = 1<fim_middle>", "", ()),
        ("<|fim▁begin|>x = <|fim▁hole|>\ny = 1<|fim▁end|>", "", ()),
        ("<｜fim▁begin｜>x = <｜fim▁hole｜>\ny = 1<｜fim▁end｜>", "", ()),
        ("<PRE> x =  <SUF>\ny = 1 <MID>", "", ()),
        ("[SUFFIX]\ny = 1[PREFIX]x = ", "", ()),
    ],
)
def test_a_template_that_the_client_filled_is_taken_apart(prompt: str, path: str, others: tuple[OtherText, ...]):
    assert taken_apart(Gap(prompt)) == Gap("x = ", "\ny = 1", path, others=others)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('MARK = "<|fim_suffix|>"\nx = ', "\ny = 1"),
        ('MARKS = ("<|fim_prefix|>", "<|fim_suffix|>")\nx = ', "\ny = 1"),
        ("x = ", '\nMARK = "<|fim_suffix|>"'),
        ("# <|fim_suffix|> begins the rest\nx = ", '\nMARK = "<|fim_suffix|>"'),
        ('MARK = "<|fim_suffix|>"\nx = "', '"\n'),
        ("x = ", '\nEND = "<|fim_middle|>"'),
    ],
)
def test_markers_in_the_code_around_the_gap_are_its_text(before: str, after: str):
    prompt = f"<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>"
    assert taken_apart(Gap(prompt)) == Gap(before, after)
    codestral = (each.replace("<|fim_suffix|>", "[PREFIX]") for each in (after, before))
    after, before = codestral
    if "# [PREFIX]" not in before:
        assert taken_apart(Gap(f"[SUFFIX]{after}[PREFIX]{before}")) == Gap(before, after)


TABBY = {
    "language": "python",
    "segments": {
        "prefix": "x = ",
        "suffix": "\ny = 1\n",
        "filepath": "main.py",
        "git_url": None,
        "declarations": [{"filepath": "shapes.py", "body": "def area(): ...\n"}],
        "relevant_snippets_from_changed_files": [
            {"filepath": "b.py", "body": "b = 1\n", "score": 0.9},
            {"filepath": "a.py", "body": "a = 1\n", "score": 0.1},
        ],
        "clipboard": "text",
    },
    "user": "somebody",
    "temperature": 0.1,
    "mode": "standard",
}


async def test_tabbys_segments_are_told_from_openais_prompt():
    async with served() as server:
        found = await server.json("/v1/completions", TABBY)
        [asked] = server.engine.asked
        assert found["choices"] == [{"index": 0, "text": "suggested"}] and found["id"] and found["mode"] == "standard"
        for path in ("/v1/health", "/v1beta/server_setting"):
            assert (await server.client.get(path)).status_code == 200
        assert (await server.post("/v1/health", {})).json()["model"] == "fake"
        assert (await server.post("/v1/events", {"type": "view"})).status_code == 200
    shown = "".join(asked.far)
    assert shown == "# a.py\na = 1\n# b.py\nb = 1\n# shapes.py\ndef area(): ...\n# path: main.py\n"


async def test_llamas_completion_streams_what_continue_puts_into_a_template():
    body = {"prompt": "<fim_prefix>x = <fim_suffix>)<fim_middle>", "n_predict": 20, "stream": True}
    async with served() as server:
        events = await server.events("/completion", body)
        whole = await server.json("/completion", body | {"stream": False})
        props = (await server.client.get("/props")).json()
    assert [event["content"] for event in events] == ["suggested", ""] and events[-1]["stop"] is True
    assert whole["content"] == "suggested" and whole["timings"]["predicted_n"] == 2
    assert props["default_generation_settings"]["n_ctx"] > 1000


@pytest.mark.parametrize("field", [{"echo": True}, {"logprobs": 3}])
async def test_what_completions_do_not_do_is_refused(field):
    async with served() as server:
        refused = await server.post("/v1/completions", {"prompt": "x = ", **field})
        plain = await server.post("/v1/completions", {"prompt": "x = ", "echo": False, "logprobs": None})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == next(iter(field))
    assert plain.status_code == 200


async def test_an_unknown_model_is_not_found_and_an_unknown_route_names_those_there_are():
    async with served() as server:
        found, unknown = [await server.client.get(f"/v1/models/{name}") for name in ("fake", "gpt-9")]
        lost = await server.client.get("/v1/engines")
    assert found.json()["id"] == "fake"
    assert unknown.status_code == 404 and unknown.json()["error"]["code"] == "model_not_found"
    assert "'fake'" in unknown.json()["error"]["message"]
    assert lost.status_code == 404 and "/v1/completions" in lost.json()["error"]["message"]


async def test_prometheus_sees_requests_by_route_and_tokens_and_no_text():
    async with served() as server:
        await server.json("/v1/completions", {"prompt": "x = ", "suffix": ")"})
        await server.post("/v1/completions", {"prompt": 1})
        await server.client.get("/v1/models/one/two")
        await server.client.get("/secret/path")
        text = (await server.client.get("/metrics")).text
    assert 'mercury_http_requests_total{route="/v1/completions",status="200"} 1.0' in text
    assert 'mercury_http_requests_total{route="/v1/completions",status="400"} 1.0' in text
    assert 'mercury_http_requests_total{route="other",status="404"} 2.0' in text
    assert 'mercury_http_tokens_total{kind="cached"} 5.0' in text and 'kind="written"} 2.0' in text
    assert "secret" not in text and "one/two" not in text
