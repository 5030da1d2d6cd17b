"""`/tokenize`, `/detokenize` and `/apply-template` as clients of llama.cpp's server call them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mercury_lsp.http import llama
from tests.support import tiny
from tests.support.http_server import Served, served

TURN, TURN_END = "<|im_start|>", "<|im_end|>"

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if tools %}{{ tools | length }} tools{% endif %}{{ '<|im_start|>assistant\\n' }}"
)


@pytest.fixture
async def server(tmp_path) -> AsyncIterator[Served]:
    folder = tiny.folder(tmp_path, rank=0, markers=(TURN, TURN_END))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    async with served(tiny.load(folder)) as made:
        yield made


@pytest.mark.parametrize("text", ["", "def f(a):\n    return a\n", "é and 中", f"{TURN}user\nx{TURN_END}"])
async def test_a_text_becomes_tokens_and_the_tokens_the_text(server: Served, text: str):
    found = (await server.json("/tokenize", {"content": text}))["tokens"]
    assert (await server.json("/detokenize", {"tokens": found}))["content"] == text


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {"content": {}}, "content"),
        ("/tokenize", {"content": [True]}, "content"),
        ("/tokenize", {"content": [10**20], "with_pieces": True}, None),
        ("/tokenize", {"content": "x" * (llama.MAX_CHARS + 1)}, "content"),
        ("/detokenize", {"tokens": [-1]}, None),
        ("/detokenize", {"tokens": [502]}, None),
        ("/detokenize", {"tokens": 3}, "tokens"),
        ("/apply-template", {"messages": []}, "messages"),
    ],
)
async def test_what_cannot_be_read_is_one_clear_error(server: Served, path: str, body: Any, param: str | None):
    reply = await server.post(path, body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_without_a_template_or_with_the_model_elsewhere_the_error_says_so(tmp_path):
    body = {"messages": [{"role": "user", "content": "x"}]}
    async with served(tiny.load(tiny.folder(tmp_path, rank=0))) as server:
        refused = await server.post("/apply-template", body)
        assert refused.status_code == 400 and "no chat template" in refused.json()["error"]["message"]
    async with served() as server:
        for path in ("/tokenize", "/detokenize", "/apply-template"):
            elsewhere = await server.post(path, body)
            assert elsewhere.status_code == 501 and "another server" in elsewhere.json()["error"]["message"]
