"""What models of edits are sent, byte for byte, and how their answers become the window's new text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.prompt.edit_families import FAMILIES, Family, family_of, new_text

RECORDED = next(
    (each / "shared" / "edit-models" for each in Path(__file__).parents if (each / "shared").is_dir()), Path()
)
"""Requests that another client (cursortab.nvim) sent to these models; not part of the repository."""

PUBLISHED = Path(__file__).parents[2] / "data" / "edit_formats"

FRAMES = (">>>>>>> UPDATED", "<|marker_1|>", "<|marker_2|>", "<|editable_region_start|>", "<|editable_region_end|>")
"""Markers that may stand around an answer."""

HUNK = EditHunk(0, "def area(side):\n", "def area(width, height):\n")
WINDOW = RewriteRequest(
    path="shapes/box.py",
    text="def area(width, height):\n    return side * side\n",
    cursor=len("def area(width, height):\n    return "),
    near="import math\n\n\n",
    suffix=("\n\nprint(area(2))\n",),
    history=(HUNK,),
    first_line=4,
)
NEW = "def area(width, height):\n    return width * height\n"


def family(name: str) -> Family:
    found = family_of("", name)
    assert found is not None
    return found


def test_zeta_2_is_shown_the_text_below_the_edits_and_the_window_in_conflict_marks():
    assert family("zeta-2").prompt(WINDOW) == (
        "<[fim-suffix]>\n\n\nprint(area(2))\n<[fim-prefix]><filename>edit_history\n"
        "--- a/shapes/box.py\n+++ b/shapes/box.py\n@@ -1,1 +1,1 @@\n"
        "-def area(side):\n+def area(width, height):\n\n"
        "<filename>shapes/box.py\nimport math\n\n\n<<<<<<< CURRENT\ndef area(width, height):\n"
        "    return <|user_cursor|>side * side\n=======\n<[fim-middle]>"
    )


def test_zeta_2_1_is_shown_the_window_between_numbered_markers():
    prompt = family("zeta2.1").prompt(WINDOW)
    assert prompt.endswith(
        "import math\n\n\n<|marker_1|>\ndef area(width, height):\n    return <|user_cursor|>side * side\n"
        "<|marker_2|>\n<[fim-middle]>"
    )


def test_mercury_edit_is_shown_the_file_with_the_window_in_it_and_the_edits():
    assert family("mercury-edit").prompt(WINDOW) == (
        "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n\n"
        "<|current_file_content|>\ncurrent_file_path: shapes/box.py\nimport math\n\n\n"
        "<|code_to_edit|>\ndef area(width, height):\n    return <|cursor|>side * side\n<|/code_to_edit|>\n"
        "\n\nprint(area(2))\n<|/current_file_content|>\n\n"
        "<|edit_diff_history|>\n--- shapes/box.py\n+++ shapes/box.py\n@@ -1,1 +1,1 @@\n"
        "-def area(side):\n+def area(width, height):\n\n<|/edit_diff_history|>\n"
    )


def test_sweep_is_shown_the_file_and_the_window_thrice_up_to_the_cursors_line():
    prompt = family("sweep").prompt(WINDOW)
    assert prompt.startswith("<|file_sep|>shapes/box.py\nimport math\n\n\ndef area(width, height):\n")
    assert prompt.endswith(
        "<|file_sep|>shapes/box.py.diff\noriginal:\ndef area(side):\nupdated:\ndef area(width, height):\n"
        "<|file_sep|>original/shapes/box.py:4:5\ndef area(width, height):\n    return side * side\n"
        "<|file_sep|>current/shapes/box.py:4:5\ndef area(width, height):\n    return <|cursor|>side * side\n"
        "<|file_sep|>updated/shapes/box.py:4:5\ndef area(width, height):\n"
    )


def test_sweep_in_the_dialect_of_its_cards_is_shown_the_window_before_the_last_edit():
    prompt = family("sweep-card").prompt(WINDOW)
    assert prompt == (
        "<|file_sep|>original/shapes/box.py\ndef area(side):\n    return side * side\n"
        "<|file_sep|>current/shapes/box.py\ndef area(width, height):\n    return side * side\n"
        "<|file_sep|>updated/shapes/box.py\n"
    )


def test_the_published_sample_of_sweep_gets_the_published_prompt():
    text = 'from utils import get_time_of_day\n\ndef greet(name):\n    print(f"Hello, {name}!")\n\ngreet("Alice")\n'
    edits = (
        EditHunk(0, 'def greet():\n    print("Hello!")\n', 'def greet(name):\n    print(f"Hello, {name}!")\n'),
        EditHunk(0, "", "from utils import get_time_of_day\n\n"),
    )
    prompt = family("sweep-card").prompt(RewriteRequest(text, path="greet.py", history=edits))
    assert prompt == (PUBLISHED / "sweep-published.txt").read_text("utf-8")


def test_sweeps_cards_take_the_last_edit_back_only_if_it_was_made_here():
    here, elsewhere = EditHunk(0, "c\n", "d\n"), EditHunk(0, "x\n", "y\n", "other.py")
    for history, original in (((elsewhere, here), "b\nc\n"), ((here, elsewhere), "b\nd\n")):
        prompt = family("sweep-card").prompt(RewriteRequest("b\nd\n", path="site/views.py", history=history))
        assert f"<|file_sep|>original/site/views.py\n{original}<|file_sep|>current/" in prompt


def test_instinct_is_shown_the_edits_and_the_excerpt_with_the_region_marked():
    prompt = family("instinct").prompt(WINDOW)
    assert prompt.endswith(
        "### Context:\n\n\n### User Edits:\n\n"
        'User edited file "shapes/box.py"\n\n```diff\n@@ -1,1 +1,1 @@\n'
        "-def area(side):\n+def area(width, height):\n```\n\n### User Excerpt:\nshapes/box.py\n\nimport math\n\n\n"
        "<|editable_region_start|>\ndef area(width, height):\n    return <|user_cursor_is_here|>side * side\n"
        "<|editable_region_end|>\n\n\nprint(area(2))\n```\n### Response:"
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("zeta-2", NEW),
        ("zeta-2", f"{NEW}>>>>>>> UPDATED\n"),
        ("zeta-2", f"```python\n{NEW}```"),
        ("zeta-2", f"<updated_code>\n{NEW}</updated_code>\n"),
        ("zeta-2", "def area(width, height):\n    return width * height<|user_cursor|>\n"),
        ("zeta-2", "def area(width, height):\n<|user_cursor|>\n    return width * height\n"),
        ("zeta-2.1", f"<|marker_1|>\n{NEW}<|marker_2|>"),
        ("mercury-edit", f"```\n{NEW}```"),
        ("mercury-edit", f"<|code_to_edit|>\n{NEW}<|/code_to_edit|>"),
        ("mercury-edit", f"import math\n\n\n{NEW}\n\nprint(area(2))"),
        ("instinct", f"<|editable_region_start|>\n{NEW}<|editable_region_end|>"),
        ("instinct", f"```python\n{NEW}```"),
        ("sweep", "    return width * height\n"),
        ("sweep-card", NEW.rstrip("\n")),
    ],
)
def test_an_answer_becomes_the_windows_new_text(name: str, written: str):
    assert new_text(family(name), WINDOW, written) == NEW


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("zeta-2", "NO_EDITS\n"),
        ("zeta-2", WINDOW.text),
        ("zeta-2", ""),
        ("zeta-2.1", "<|marker_1|>\n<|marker_1|>"),
        ("mercury-edit", "None"),
        ("sweep", "    return side * side"),
    ],
)
def test_no_change_is_the_windows_own_text(name: str, written: str):
    assert new_text(family(name), WINDOW, written) == WINDOW.text


@pytest.mark.parametrize("each", FAMILIES, ids=lambda each: each.name)
def test_an_answer_with_a_sentinel_is_none(each: Family):
    for marker in each.markers:
        if marker not in (each.cursor, *FRAMES):
            assert new_text(each, WINDOW, f"def area():\n    {marker}\n    return 1\n    pass\n") is None


def test_windows_are_taken_from_above_and_below_in_turns():
    lines = [f"{number:08}\n" for number in range(100)]
    assert family("zeta-2").region(lines, 50) == (35, 66)
    assert family("zeta-2").region(lines, 2) == (0, 18)
    assert family("mercury-edit").region(lines, 50) == (25, 75)
    assert family("mercury-edit").region(["x" * 1000, "y\n"], 0) == (0, 1)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("zeta-2", "zeta-2"),
        ("bartowski/zed-industries_zeta-2.1-GGUF", "zeta-2.1"),
        ("sweep-next-edit-v2-7B", "sweep"),
        ("mercury-edit", "mercury-edit"),
        ("qwen2.5-coder", None),
    ],
)
def test_a_models_name_tells_its_family(model: str, name: str | None):
    found = family_of(model)
    assert (found.name if found else None) == name


def recorded() -> list[Any]:
    """Requests that were recorded with other clients, where they are at hand: the window, and what was sent."""
    found = []
    for path in sorted(RECORDED.glob("*.json")) if Path() != RECORDED else []:
        for model, answers in json.loads(path.read_text())["answers"].items():
            for number, each in enumerate(answers):
                body = each["request"]
                prompt = body["prompt"] if "prompt" in body else body["messages"][0]["content"]
                found.append(pytest.param(body, prompt, id=f"{path.stem}-{model}-{number}"))
    return found


@pytest.mark.skipif(Path() == RECORDED, reason="the recorded requests are not part of the repository")
@pytest.mark.parametrize(("body", "prompt"), recorded())
def test_a_prompt_equals_the_recorded_request_byte_for_byte(body: Any, prompt: str):
    found = family_of(body["model"])
    assert found is not None
    assert found.prompt(window_of(found.name, prompt)) == _without_predictions(prompt)
    assert list(found.stop) == body.get("stop", []) and found.is_chat == ("messages" in body)


def _without_predictions(prompt: str) -> str:
    """A prompt that does not tell which edits a model had made."""
    return prompt.replace("// User accepted prediction:\n", "")


def window_of(name: str, prompt: str) -> RewriteRequest:
    """The window that a prompt shows."""
    if name == "mercury-edit":
        shape = (
            r"current_file_path: (?P<path>[^\n]*)\n(?P<above>.*)<\|code_to_edit\|>\n(?P<text>.*)<\|/code_to_edit\|>\n"
            r"(?P<below>.*)<\|/current_file_content\|>"
        )
        edit = r"--- ([^\n]*)\n\+\+\+ [^\n]*\n@@[^\n]*\n((?:[-+][^\n]*\n)*)"
        mark = "<|cursor|>"
    elif name == "zeta-2":
        shape = (
            r"<\[fim-suffix\]>\n(?P<below>.*)<\[fim-prefix\]>.*<filename>(?P<path>[^\n]*)\n(?P<above>.*)"
            r"<<<<<<< CURRENT\n(?P<text>.*)=======\n"
        )
        edit = r"--- a/([^\n]*)\n\+\+\+ [^\n]*\n@@[^\n]*\n((?:[-+][^\n]*\n)*)"
        mark = "<|user_cursor|>"
    else:
        shape = (
            r".*original/(?P<path>[^\n]*):(?P<first>\d+):\d+\n.*<\|file_sep\|>current/[^\n]*\n"
            r"(?P<text>.*)<\|file_sep\|>updated"
        )
        edit = r"<\|file_sep\|>([^\n]*)\.diff\noriginal:\n(.*?)(?=<\|file_sep\|>)"
        mark = "<|cursor|>"
    found = re.search(shape, prompt, re.DOTALL)
    assert found is not None
    parts = found.groupdict()
    cursor = parts["text"].index(mark)
    history = tuple(hunk(body, path) for path, body in re.findall(edit, prompt, re.DOTALL if name == "sweep" else 0))
    first = int(parts.get("first") or 1)
    text = parts["text"].replace(mark, "")
    above, below = parts.get("above") or "", (parts.get("below") or "",)
    return RewriteRequest(text, above, (), below, history, parts["path"], cursor=cursor, first_line=first)


def hunk(body: str, path: str) -> EditHunk:
    """The edit that a prompt shows."""
    if "updated:\n" in body:
        removed, _, inserted = body.partition("updated:\n")
        return EditHunk(0, removed, inserted, path)
    removed, inserted = (
        "".join(line[1:] for line in body.splitlines(keepends=True) if line.startswith(mark)) for mark in "-+"
    )
    return EditHunk(0, removed, inserted, path)
