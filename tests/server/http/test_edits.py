"""Edits and merges: Mercury's routes by its SDK, Sweep's plugins and prompt, Tabby's next edit."""

import asyncio
import json
import re

import pytest
from mercury_engine.api import Answer, Control, Request

from mercury_lsp.http import rewriting
from mercury_lsp.http.edits import merged
from mercury_lsp.http.rewriting import read_diff
from tests.support.http_server import Editing, served

DIFF = "--- a/main.py\n+++ b/main.py\n@@ -1,2 +1,2 @@\n-x = old(1)\n+x = new(1)\n y = 2\n"

INSIDE = (
    "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n\n"
    "<|current_file_content|>\ncurrent_file_path: main.py\nx = new(1)\ny = 2\n<|code_to_edit|>\nz = old(<|cursor|>3)\n"
    "<|/code_to_edit|>\nlast = 4\n<|/current_file_content|>\n\n"
    f"<|edit_diff_history|>\n{DIFF}<|/edit_diff_history|>"
)

BESIDE = (
    f"<|edit_diff_history|>\n{DIFF}<|/edit_diff_history|>\n"
    "<|current_file_content|>\ncurrent_file_path: main.py\nx = new(1)\ny = 2\nz = old(3)\nlast = 4\n"
    "<|/current_file_content|>\n"
    "<|code_to_edit|>\nz = old(<|cursor|>3)\n<|/code_to_edit|>\n"
)


@pytest.mark.parametrize("prompt", [INSIDE, BESIDE], ids=["inside", "beside"])
async def test_the_sdk_gets_the_region_as_it_should_be(prompt: str):
    async with served(Editing()) as server:
        found = await server.inception.edit.completions.create(
            model="mercury-edit", messages=[{"role": "user", "content": prompt}]
        )
        [asked] = server.engine.regions
    assert found.choices[0].message.content == "z = new(3)\n"
    assert found.usage.prompt_tokens == 20
    assert (asked.text, "".join(asked.far) + asked.near, "".join(asked.suffix)) == (
        "z = old(3)\n",
        "# path: main.py\nx = new(1)\ny = 2\n",
        "last = 4\n",
    )
    [hunk] = asked.history
    assert (hunk.removed, hunk.inserted, hunk.path) == ("x = old(1)\n", "x = new(1)\n", None)


async def test_a_long_region_is_rewritten_around_the_cursor_and_returned_whole():
    lines = [f"a{number} = old\n" for number in range(60)]
    region = "".join((*lines[:30], "<|cursor|>", *lines[30:]))
    prompt = (
        f"<|current_file_content|>\ncurrent_file_path: a.py\n{''.join(lines)}<|/current_file_content|>\n"
        f"<|code_to_edit|>\n{region}<|/code_to_edit|>\n"
    )
    async with served(Editing()) as server:
        found = await server.json(
            "/v1/edit/completions", {"messages": [{"content": [{"type": "text", "text": prompt}]}]}
        )
        [asked] = server.engine.regions
    text = found["choices"][0]["message"]["content"].splitlines()
    assert len(text) == 60 and asked.text.count("\n") == 24
    assert [number for number, line in enumerate(text) if "new" in line] == [*range(22, 46)]


@pytest.mark.parametrize("above", [0, 20_000])
@pytest.mark.parametrize("below", [0, 20_000])
async def test_of_a_long_file_only_what_is_near_the_region_is_looked_at(above: int, below: int):
    before, after = (
        "".join(f"{side}{number} = 1\n" for number in range(count)) for side, count in (("a", above), ("b", below))
    )
    region = "<|code_to_edit|>\nz = old(<|cursor|>3)\n<|/code_to_edit|>\n"
    prompt = f"<|current_file_content|>\ncurrent_file_path: a.py\n{before}{region}{after}<|/current_file_content|>\n"
    async with served(Editing()) as server:
        found = await server.json("/v1/edit/completions", {"messages": [{"content": prompt}]})
        [asked] = server.engine.regions
    assert found["choices"][0]["message"]["content"] == "z = new(3)\n"
    assert asked.text == "z = old(3)\n"
    assert (f"a{above - 1} = 1" in asked.near or not above) and ("b0 = 1" in "".join(asked.suffix) or not below)
    assert rewriting.EditedDocument(before + after, 0, 1).window()[0].text.count("\n") < 5_000


async def test_a_model_that_makes_no_edits_says_which_one_does():
    async with served() as server:
        for route in ("/v1/edit/completions", "/v1/chat/completions"):
            reply = await server.post(route, {"messages": [{"role": "user", "content": INSIDE}]})
            error = reply.json()["error"]
            assert (reply.status_code, error["type"], error["param"]) == (501, "server_error", "model")
            assert re.findall("models (?:add|use) [a-z0-9.-]+(?: --edits)?", error["message"]) == [
                "models add qwen2.5-coder-0.5b",
                "models use qwen2.5-coder-0.5b --edits",
            ]
        for body in ({}, {"messages": []}, {"messages": [{"content": "plain"}]}, {"messages": [{"content": 1}]}):
            assert (await server.post("/v1/edit/completions", body)).status_code == 400


def test_secrets_are_cut_from_the_history_and_a_secret_region_is_left_alone():
    key = 'API_KEY = "sk-proj-Qh3vTz81LkXw92MnBv74RtYu"'
    [first, second] = read_diff(f"@@ -1 +1 @@\n-{key}\n+x = 1\n@@ -9 +9 @@\n-a\n+b\n", "main.py")
    assert "sk-proj" not in str(first) and (second.removed, second.inserted) == ("a\n", "b\n")


async def test_next_edits_leave_the_engine_a_place_for_editors():
    class Slow(Editing):
        running = most = 0

        async def answer(self, request: Request, control: Control | None = None) -> Answer:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0.02)
            self.running -= 1
            return await super().answer(request, control)

    async with served(Slow()) as server:
        body = {"messages": [{"content": INSIDE}]}
        await asyncio.gather(*(server.json("/v1/edit/completions", body) for _ in range(6)))
        assert server.engine.most == 3


async def test_sweeps_plugins_get_the_first_edit_in_utf16_units():
    contents = "e = '𝒆'\nx = new(1)\ny = old(2)\n"
    body = {
        "file_path": "main.py",
        "file_contents": contents,
        "original_file_contents": "",
        "recent_changes": "File: main.py\n@@ -2,1 +2,1 @@\n-x = old(1)\n+x = new(1)\n",
        "cursor_position": 12,
        "file_chunks": [],
        "recent_user_actions": [{"action_type": "INSERT", "line_number": 1}],
    }
    async with served(Editing()) as server:
        reply = await server.post("/backend/next_edit_autocomplete", body)
        [asked] = server.engine.regions
        silent = await server.post("/backend/next_edit_autocomplete", body | {"file_contents": "x = 1\n"})
    [line] = [json.loads(each) for each in reply.text.splitlines()]
    start = len("e = '𝒆'\nx = new(1)\n".encode("utf-16-le")) // 2
    assert (line["start_index"], line["end_index"], line["completion"]) == (start, start + 11, "y = new(2)\n")
    assert line["completions"][0]["completion"] == line["completion"] and line["autocomplete_id"]
    assert [(each.removed, each.path) for each in asked.history] == [("x = old(1)\n", None)] and silent.text == ""


ORIGINAL = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"


@pytest.mark.parametrize(
    ("snippet", "changed"),
    [
        (
            "# ... existing code ...\ndef two():\n    return 22\n# ... existing code ...\n",
            ("return 2\n", "return 22\n"),
        ),
        ("def two():\n    value = 22\n    return value\n", ("    return 2\n", "    value = 22\n    return value\n")),
        ("import os\nimport re\n# ... rest of code\n", ("import os\n", "import os\nimport re\n")),
        (
            "    # ...\n    return 3\n\n\ndef four():\n    return 4\n",
            ("return 3\n", "return 3\n\n\ndef four():\n    return 4\n"),
        ),
        ("// ... existing code ...\ndef three():\n    return 33\n", ("return 3\n", "return 33\n")),
        (ORIGINAL.replace("1", "11"), ("return 1\n", "return 11\n")),
    ],
)
def test_a_snippet_is_merged_where_its_lines_stand(snippet: str, changed: tuple[str, str]):
    assert merged(ORIGINAL, snippet) == ORIGINAL.replace(*changed)
