"""Models of edits in this process: their prompt is read, markers never become text, and the window is the draft."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_engine.api import EditHunk, Rewrite, RewriteRequest
from mercury_engine.errors import ModelCorrupt
from mercury_engine.loading import load_model
from mercury_engine.prompt.edit_families import FORMAT_FILE, Family, family_of, family_of_folder
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine

from tests.support import scripted_network, tiny

ZETA_MARKERS = (
    "<[begin▁of▁sentence]>",
    "<[end▁of▁sentence]>",
    "<[fim-prefix]>",
    "<[fim-suffix]>",
    "<[fim-middle]>",
)

FAMILIES = ("sweep", "sweep-card", "zeta-2", "zeta-2.1")

ABOVE, BELOW = "import app\n\ndef views(app):\n", "    return view, other\n"
OLD = "    view = View(app)\n    other = View()\n    third = View()\n"
NEW = "    view = View(app)\n    other = View(app)\n    third = View()\n"

REQUEST = RewriteRequest(
    text=OLD,
    near=ABOVE,
    suffix=(BELOW,),
    history=(EditHunk(0, "    view = View()\n", "    view = View(app)\n"),),
    path="site/views.py",
    language="python",
    cursor=len("    view = View(app)\n    ot"),
    first_line=4,
)

FRAMES = {
    "sweep": ("", "", "<|file_sep|>"),
    "sweep-card": ("", "", "<|file_sep|>"),
    "zeta-2": ("", ">>>>>>> UPDATED\n", "<[end▁of▁sentence]>"),
    "zeta-2.1": ("<|marker_1|>\n", "<|marker_2|>", "<[end▁of▁sentence]>"),
}
"""What stands before and after a window, and the token that ends an answer."""


class Model:
    """A model of a family that writes what a test says."""

    def __init__(self, folder: Path, name: str) -> None:
        found = family_of("", name)
        assert found is not None
        self.family: Family = found
        markers = ZETA_MARKERS if name.startswith("zeta") else tiny.QWEN_MARKERS
        self.engine, self.network = scripted_network.engine(folder / "model", markers, found)

    def rewritten(self, written: str, request: RewriteRequest = REQUEST) -> Rewrite:
        """The rewrite where the model writes a text after the prompt, and then an end."""
        tokenizer, markers = self.engine.tokenizer, self.family.markers
        prompt = tokenizer.encode_prompt(self.family.prompt(request), markers)
        [end] = tokenizer.token(FRAMES[self.family.name][2])
        self.network.script = scripted_network.writes(tokenizer, written, {end: 0.99}, prompt[-12:])
        return self.engine.rewrite(request)

    def window(self, text: str) -> str:
        """What it writes for this text in place of the window."""
        begin, end, _ = FRAMES[self.family.name]
        given = OLD.index("    other") if self.family.name == "sweep" else 0
        return f"{begin}{text[given:]}{end}"


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    return Model(tmp_path, request.param)


def test_a_changed_line_is_a_hunk_of_the_window_with_its_probability(model: Model):
    found = model.rewritten(model.window(NEW))
    assert (found.text, found.is_finished) == (NEW, True)
    [hunk] = found.hunks
    assert (hunk.start, hunk.end, hunk.text) == (1, 2, "    other = View(app)\n")
    assert 0.5 < hunk.probability <= 1


@pytest.mark.parametrize(
    "new", [OLD.removesuffix("    third = View()\n"), OLD + "    fourth = View(app)\n"], ids=["removed", "added"]
)
def test_lines_are_removed_and_added(model: Model, new: str):
    found = model.rewritten(model.window(new))
    assert found.text == new and found.is_finished
    lines = OLD.splitlines(keepends=True)
    for hunk in reversed(found.hunks):
        lines[hunk.start : hunk.end] = [hunk.text]
    assert "".join(lines) == new


@pytest.mark.parametrize(("name", "written"), [("zeta-2", "NO_EDITS\n"), ("zeta-2.1", "<|marker_1|>\n<|marker_1|>")])
def test_no_change_in_a_familys_own_words_changes_nothing(tmp_path: Path, name: str, written: str):
    found = Model(tmp_path, name).rewritten(written)
    assert (found.text, found.hunks) == (OLD, ())


def test_a_window_that_spells_a_marker_runs_no_pass(model: Model):
    model.network.passes.clear()
    for marker in model.family.markers:
        for changes in ({"text": f"x = '{marker}'\n"}, {"near": f"# {marker}\n"}, {"path": f"a{marker}b.py"}):
            found = model.engine.rewrite(replace(REQUEST, **changes))
            assert (found.is_finished, model.network.passes) == (False, [])


def test_text_that_spells_a_marker_stays_text(tmp_path: Path):
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
        assert each.encode_prompt("a<|file_sep|>b<|fim_prefix|>", ("<|file_sep|>",)).count(marker) == 1
        assert not each.special_ids & {*each.encode_prompt("a<|fim_prefix|>", ("<|file_sep|>",))}


@pytest.mark.parametrize(
    "text", ['{"family": "swep"}', '{"family": "instinct"}', "{", "[]", '{"family": "sweep", "end": ""}']
)
def test_a_file_that_names_no_known_family_is_refused(tmp_path: Path, text: str):
    (tmp_path / FORMAT_FILE).write_text(text)
    with pytest.raises(ModelCorrupt, match="correct it or delete it"):
        family_of_folder(tmp_path, ())


def test_a_model_of_no_family_says_so(tmp_path: Path):
    folder = tiny.folder(tmp_path / "sweep-next-edit-tiny", rank=0, markers=tiny.QWEN_MARKERS)
    family = load_model(folder, "cpu", 1, None, "torch").edit_family
    assert family is not None and family.name == "sweep"
    assert Engine.load(folder, device="cpu", backend="torch").edit_format == "sweep"
    other = tiny.folder(tmp_path / "other", rank=0)
    assert Engine.load(other, device="cpu", backend="torch").edit_format is None
