"""Prompt formats of open edit models: as their fixtures show them, and sentinels never become or leave text."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.engine import Engine
from mercury_engine.errors import ModelCorrupt
from mercury_engine.loading import load_model
from mercury_engine.prompt.edit_formats.edit_format import TEMPLATE_FILE
from mercury_engine.prompt.edit_formats.families import FAMILIES, format_of
from mercury_engine.prompt.edit_formats.rendering import answer, render
from mercury_engine.prompt.edit_formats.sweep import SWEEP, SWEEP_SERVER
from mercury_engine.prompt.edit_formats.zeta import ZETA_1, ZETA_2, ZETA_2_1
from mercury_engine.prompt.tokenizer import Tokenizer

from tests.support import scripted_network, tiny

FIXTURES = Path(__file__).parents[2] / "data" / "edit_formats"

HISTORY = (
    EditHunk(0, "text = load(name)\n", 'text = load(name, "utf-8")\n', "tools/show.py"),
    EditHunk(0, "    view = View()\n", "    view = View(app)\n", line=1),
)
REQUEST = RewriteRequest(
    text="    view = View(app)\n    other = View()\n",
    near="def views(app):\n",
    suffix=("    return view, other\n",),
    history=HISTORY,
    path="site/views.py",
    language="python",
    cursor=20,
)
NEW = "    view = View(app)\n    other = View(app)\n"

by_family = pytest.mark.parametrize("edit_format", FAMILIES, ids=[each.family for each in FAMILIES])


def shown(edit_format, request=REQUEST) -> str:
    """The prompt as one text."""
    rendered = render(edit_format, request)
    return "".join(piece.text for piece in rendered.pieces)


@by_family
def test_a_prompt_is_the_familys_fixture(edit_format):
    assert shown(edit_format) == (FIXTURES / f"{edit_format.family}.txt").read_text("utf-8")


NAMES = {
    "sweep-next-edit-0.5b": "sweep",
    "sweepai/sweep-next-edit-1.5B": "sweep",
    "sweep-next-edit-1.5b.q8_0.v2": "sweep",
    "Sweep Next Edit V2 7B": "sweep-server",
    "Zeta": "zeta-1",
    "zeta-2": "zeta-2",
    "zeta2-Q4_K_M": "zeta-2",
    "Zeta 2.1": "zeta-2.1",
    "zeta_2_1": "zeta-2.1",
    "continuedev/instinct": "instinct",
    "qwen2.5-coder-0.5b": None,
    "mercury-135m": None,
}


@pytest.mark.parametrize(("name", "family"), NAMES.items(), ids=NAMES)
def test_the_format_follows_from_the_models_name(tmp_path, name, family):
    found = format_of(tmp_path, ("unnamed", name))
    assert (found.family if found else None) == family


def test_a_models_own_template_file_goes_before_its_name(tmp_path):
    own = {**asdict(SWEEP), "family": "ours", "prompt": "{region}<|file_sep|>\n"}
    (tmp_path / TEMPLATE_FILE).write_text(json.dumps(own))
    found = format_of(tmp_path, ("zeta-2",))
    assert found.family == "ours"
    assert shown(found, replace(REQUEST, near="", suffix=())) == REQUEST.text + "<|file_sep|>\n"


def test_a_template_file_may_name_the_family_of_a_known_format(tmp_path):
    (tmp_path / TEMPLATE_FILE).write_text('{"family": "sweep-server"}')
    assert format_of(tmp_path, ("sweep-next-edit-0.5b",)) is SWEEP_SERVER


PUBLISHED = (
    EditHunk(0, 'def greet():\n    print("Hello!")\n', 'def greet(name):\n    print(f"Hello, {name}!")\n', line=2),
    EditHunk(0, "", "from utils import get_time_of_day\n\n"),
)
"""The edits of the sample that is published with Sweep's models; its other file is left out."""

SAMPLE = 'from utils import get_time_of_day\n\ndef greet(name):\n    print(f"Hello, {name}!")\n\ngreet("Alice")\n'


@pytest.mark.parametrize("edit_format", [SWEEP, SWEEP_SERVER], ids=["sweep", "sweep-server"])
def test_the_published_sample_gets_the_prompt_that_the_published_code_makes_of_it(edit_format):
    request = RewriteRequest(SAMPLE, history=PUBLISHED, path="greet.py", language="python", cursor=34)
    assert shown(edit_format, request) == (FIXTURES / f"{edit_format.family}-published.txt").read_text("utf-8")


def test_edits_are_taken_back_from_the_newest_up_to_one_that_is_not_here():
    history = (
        EditHunk(0, "a\n", "b\n"),
        EditHunk(0, "x\n", "y\n", "other.py"),
        EditHunk(0, "c\n", "d\n"),
        EditHunk(0, "", "e\n"),
    )
    prompt = shown(SWEEP_SERVER, replace(REQUEST, text="b\nd\ne\n", near="", suffix=(), history=history, cursor=0))
    assert "<|file_sep|>original/site/views.py:1:4\nb\nc\n<|file_sep|>current/" in prompt


WRONG = {
    "a family that is not known": '{"family": "swep"}',
    "no JSON": "{",
    "a list": "[]",
    "an unknown field": json.dumps({**asdict(SWEEP), "prompts": ""}),
    "a field left out": json.dumps({"family": "x", "prompt": "", "style": "diff"}),
    "a number for a text": json.dumps({**asdict(SWEEP), "prompt": 5}),
    "an unknown style": json.dumps({**asdict(SWEEP), "style": "patch"}),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_template_file_that_is_not_valid_is_refused(tmp_path, text):
    (tmp_path / TEMPLATE_FILE).write_text(text)
    with pytest.raises(ModelCorrupt, match="correct it or delete it"):
        format_of(tmp_path, ())


@by_family
def test_a_region_that_spells_a_sentinel_is_not_sent(edit_format):
    for sentinel in edit_format.sentinels:
        hostile = replace(
            REQUEST, text=f"x = 1\n# {sentinel.strip()}\n" if sentinel.strip() != "=======" else "=======\n"
        )
        assert render(edit_format, hostile) is None
        assert render(edit_format, replace(REQUEST, path=f"a\n{sentinel.strip()}\nb.py")) is None


@by_family
def test_edits_and_lines_around_that_spell_a_sentinel_are_left_out(edit_format):
    clean = shown(edit_format)
    for sentinel in edit_format.sentinels:
        line = f"hostile {sentinel.strip()}\n" if sentinel.strip() != "=======" else "=======\n"
        history = (*HISTORY, EditHunk(0, "x\n", line, "a.py"))
        assert "hostile" not in shown(edit_format, replace(REQUEST, history=history))
        around = replace(REQUEST, near=line + REQUEST.near, suffix=(*REQUEST.suffix, line))
        assert render(edit_format, around) is None or shown(edit_format, around).count(sentinel) == clean.count(
            sentinel
        )


def test_text_that_spells_a_marker_stays_text(tmp_path):
    tiny.folder(tmp_path / "model", rank=0, markers=tiny.QWEN_MARKERS)
    tokenizer = Tokenizer(tmp_path / "model")
    raw = json.loads((tmp_path / "model" / "tokenizer.json").read_text())
    for token in raw["added_tokens"]:
        token["special"] = False  # as in published checkpoints
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(raw))
    for each in (tokenizer, Tokenizer(tmp_path / "model")):
        [marker] = each.token("<|file_sep|>")
        assert marker in each.special_ids
        assert marker not in each.encode("a <|file_sep|> b")
        assert each.decode(each.encode("a <|file_sep|> b")) == "a <|file_sep|> b"


ANSWERS = {
    "a rewrite": (ZETA_2_1, f"{NEW}<|marker_2|>", None),
    "the end is cut off already": (ZETA_2, NEW, NEW),
    "no edits": (ZETA_2, "NO_EDITS\n", REQUEST.text),
    "the same marker twice": (ZETA_2_1, "<|marker_1|>\n", REQUEST.text),
    "the cursor": (ZETA_2, NEW.replace("other", "<|user_cursor|>other"), NEW),
    "two cursors": (ZETA_2, NEW.replace("View", "<|user_cursor|>View"), None),
    "no line break at the end": (ZETA_1, NEW.rstrip("\n"), NEW),
    "everything deleted": (ZETA_1, "", ""),
    "the whole window": (SWEEP, f"def views(app):\n{NEW}    return view, other\n", NEW),
    "a line around changed": (SWEEP, f"def views(all):\n{NEW}    return view, other\n", None),
    "a line around is missing": (SWEEP, f"{NEW}    return view, other\n", None),
    "a fault of its training data": (SWEEP_SERVER, f"{NEW.rstrip()} No newline at end of file", NEW),
    "a spelled sentinel": (SWEEP, f"def views(app):\n<|file_sep|>\n{NEW}    return view, other\n", None),
}


@pytest.mark.parametrize(("edit_format", "written", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_the_regions_text_or_none(edit_format, written, expected):
    assert answer(edit_format, render(edit_format, REQUEST), written) == expected


@pytest.fixture
def sweep(tmp_path):
    """An engine with Sweep's format around a scripted network."""
    engine, network = scripted_network.engine(tmp_path / "model", tiny.QWEN_MARKERS, SWEEP)
    return engine, network


def rewritten(sweep, text, request=REQUEST, end="<|file_sep|>"):
    engine, network = sweep
    tokenizer = engine.tokenizer
    behind = tokenizer.encode("updated/site/views.py\n")
    [ends] = tokenizer.token(end)
    network.script = scripted_network.writes(tokenizer, text, {ends: 0.99}, behind)
    return engine.rewrite(request)


def test_an_edit_model_rewrites_in_its_own_format(sweep):
    found = rewritten(sweep, f"def views(app):\n{NEW}    return view, other\n")
    assert (found.text, found.is_finished) == (NEW, True)
    assert found.steps <= 4
    assert sweep[0].edit_format == "sweep"


def test_an_edit_models_unchanged_region_costs_a_pass_for_many_tokens(sweep):
    found = rewritten(sweep, f"def views(app):\n{REQUEST.text}    return view, other\n")
    assert (found.text, found.is_finished) == (REQUEST.text, True)
    assert found.steps == 1


def test_an_edit_model_that_changes_lines_around_gives_no_answer(sweep):
    found = rewritten(sweep, f"def views(all):\n{NEW}    return view, other\n")
    assert (found.text, found.probability, found.is_finished) == (REQUEST.text, 0.0, False)


def test_a_hostile_region_runs_no_pass(sweep):
    engine, network = sweep
    network.passes.clear()
    found = engine.rewrite(replace(REQUEST, text="x = '<|file_sep|>'\n"))
    assert (found.is_finished, network.passes) == (False, [])


def test_a_model_without_an_edit_format_says_so(tmp_path):
    folder = tiny.folder(tmp_path / "sweep-next-edit-tiny", rank=0, markers=tiny.QWEN_MARKERS)
    assert load_model(folder, "cpu", 1, None, "torch").edit_format == SWEEP
    assert Engine.load(folder, device="cpu", backend="torch").edit_format == "sweep"
    other = tiny.folder(tmp_path / "other", rank=0)
    assert Engine.load(other, device="cpu", backend="torch").edit_format is None
