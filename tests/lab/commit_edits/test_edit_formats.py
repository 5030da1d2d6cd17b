"""Two edit formats of one model are judged on the same positions, by servers that load it in either of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_engine.loading import load_model
from mercury_lab.commit_edits import edit_formats, run
from mercury_lab.commit_edits.edit_formats import in_format, paired
from mercury_lab.commit_edits.run import Judged

from tests.support import tiny

WANTED = Judged("one", "o/r", "rename", "python", "unasked", True, True, False, True, True, "region", 9)
SILENT = replace(WANTED, position="two", wants=False, is_shown=False, is_useful=False, is_exact=False, source="")


def test_a_format_is_chosen_without_touching_the_model(tmp_path):
    model = tiny.folder(tmp_path / "sweep-next-edit-tiny", rank=0, markers=tiny.QWEN_MARKERS)
    (model / "edit_format.json").write_text('{"family": "sweep"}')
    for family in ("sweep", "sweep-server"):
        found = load_model(in_format(model, family, tmp_path), "cpu", 1, None, "torch").edit_format
        assert found is not None and found.family == family
    assert (model / "edit_format.json").read_text() == '{"family": "sweep"}'


def test_only_one_format_is_right_where_the_other_shows_too_much_or_nothing_useful():
    loud, useless = replace(SILENT, is_shown=True), replace(WANTED, is_useful=False)
    assert paired([WANTED, SILENT], [WANTED, loud]) == {"both": 1, "only_first": 1, "only_second": 0}
    assert paired([useless, loud], [WANTED, SILENT]) == {"both": 0, "only_first": 0, "only_second": 2}


def test_each_format_is_asked_about_the_same_positions(tmp_path, monkeypatch, capsys):
    model = tiny.folder(tmp_path / "model", rank=0, markers=tiny.QWEN_MARKERS)
    asked: list[tuple[str, list[str]]] = []

    def ask(positions, texts, record, options):
        format_file = json.loads((Path(options.model) / "edit_format.json").read_text())
        asked.append((format_file["family"], [at.name for at in positions]))
        for at in positions:
            record.add(replace(WANTED if at.left else SILENT, position=at.name))
            yield None, record.found[-1], None

    monkeypatch.setattr(run, "ask_server", ask)
    out = tmp_path / "out.json"
    options = ["--model", str(model), "--mirror", str(tmp_path), "--limit", "2", "--ways", "unasked", "--out", str(out)]
    assert edit_formats.main(options) == 0
    assert [family for family, _ in asked] == ["sweep", "sweep-server"]
    assert asked[0][1] == asked[1][1] and len(asked[0][1]) == 4
    assert json.loads(out.read_text())["paired"]["both"] == 4
    assert "right in both formats: 4" in " ".join(capsys.readouterr().out.split())


def test_the_held_out_half_stays_closed(tmp_path):
    with pytest.raises(SystemExit):
        edit_formats.main(["--model", "x", "--mirror", str(tmp_path), "--held-out"])
