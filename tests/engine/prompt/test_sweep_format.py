"""The prompt of Sweep's edit models: as its fixtures show it, and markers never become or leave text."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_engine.api import EditHunk, RewriteRequest
from mercury_engine.errors import ModelCorrupt
from mercury_engine.loading import load_model
from mercury_engine.prompt.sweep_format import FORMAT_FILE, MARKERS, SWEEP, answer, format_of, render
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine

from tests.support import scripted_network, tiny

FIXTURES = Path(__file__).parents[2] / "data" / "edit_formats"

HISTORY = (
    EditHunk(0, "text = load(name)\n", 'text = load(name, "utf-8")\n', "tools/show.py"),
    EditHunk(0, "    view = View()\n", "    view = View(app)\n"),
)
REQUEST = RewriteRequest(
    text="    view = View(app)\n    other = View()\n",
    near="def views(app):\n",
    suffix=("    return view, other\n",),
    history=HISTORY,
    path="site/views.py",
    language="python",
)
NEW = "    view = View(app)\n    other = View(app)\n"


def shown(request: RewriteRequest = REQUEST) -> str:
    """The prompt as one text."""
    rendered = render(request)
    assert rendered is not None
    return "".join(piece.text for piece in rendered.pieces)


def test_a_prompt_is_the_fixture():
    assert shown() == (FIXTURES / "sweep.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sweep-next-edit-0.5b", SWEEP),
        ("sweepai/sweep-next-edit-1.5B", SWEEP),
        ("Sweep_Next_Edit 1.5B", SWEEP),
        ("qwen2.5-coder-0.5b", None),
        ("mercury-135m", None),
    ],
)
def test_the_format_follows_from_the_models_name(tmp_path, name, expected):
    assert format_of(tmp_path, ("unnamed", name)) == expected


def test_a_models_own_file_goes_before_its_name(tmp_path):
    (tmp_path / FORMAT_FILE).write_text('{"family": "sweep"}')
    assert format_of(tmp_path, ("unnamed",)) == SWEEP


PUBLISHED = (
    EditHunk(0, 'def greet():\n    print("Hello!")\n', 'def greet(name):\n    print(f"Hello, {name}!")\n'),
    EditHunk(0, "", "from utils import get_time_of_day\n\n"),
)
"""The edits of the sample that is published with Sweep's models; its other file is left out."""

SAMPLE = 'from utils import get_time_of_day\n\ndef greet(name):\n    print(f"Hello, {name}!")\n\ngreet("Alice")\n'


def test_the_published_sample_gets_the_published_prompt():
    request = RewriteRequest(SAMPLE, history=PUBLISHED, path="greet.py", language="python")
    assert shown(request) == (FIXTURES / "sweep-published.txt").read_text("utf-8")


def test_the_last_edit_is_taken_back_if_it_was_made_here():
    request = replace(REQUEST, text="b\nd\n", near="", suffix=())
    here, elsewhere = EditHunk(0, "c\n", "d\n"), EditHunk(0, "x\n", "y\n", "other.py")
    for history, original in (((elsewhere, here), "b\nc\n"), ((here, elsewhere), "b\nd\n")):
        prompt = shown(replace(request, history=history))
        assert f"<|file_sep|>original/site/views.py\n{original}<|file_sep|>current/" in prompt


@pytest.mark.parametrize("text", ['{"family": "swep"}', "{", "[]", '{"family": "sweep", "end": ""}'])
def test_a_file_that_names_no_known_format_is_refused(tmp_path, text):
    (tmp_path / FORMAT_FILE).write_text(text)
    with pytest.raises(ModelCorrupt, match="correct it or delete it"):
        format_of(tmp_path, ())


@pytest.mark.parametrize("marker", sorted(MARKERS))
def test_a_region_that_spells_a_marker_is_not_sent(marker: str):
    assert render(replace(REQUEST, text=f"x = 1\n# {marker}\n")) is None
    assert render(replace(REQUEST, near=f"# {marker}\n")) is None
    assert render(replace(REQUEST, path=f"a{marker}b.py")) is None


@pytest.mark.parametrize("marker", sorted(MARKERS))
def test_edits_that_spell_a_marker_are_left_out(marker: str):
    history = (*HISTORY, EditHunk(0, "x\n", f"hostile {marker}\n", "a.py"))
    assert "hostile" not in shown(replace(REQUEST, history=history))


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
    "the whole window": (f"def views(app):\n{NEW}    return view, other\n", NEW),
    "no line break at the end": (f"def views(app):\n{NEW}    return view, other", NEW),
    "everything deleted": ("def views(app):\n    return view, other\n", ""),
    "a line around changed": (f"def views(all):\n{NEW}    return view, other\n", None),
    "a line around is missing": (f"{NEW}    return view, other\n", None),
    "a spelled marker": (f"def views(app):\n<|file_sep|>\n{NEW}    return view, other\n", None),
}


@pytest.mark.parametrize(("written", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_the_regions_text_or_none(written, expected):
    assert answer(render(REQUEST), written) == expected


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
    assert (found.text, found.is_finished) == (REQUEST.text, False)


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
