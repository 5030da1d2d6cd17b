"""Positions come from commits by shape, with line numbers and no text, and are scenarios again with a clone."""

import json
from pathlib import Path

import pytest
from mercury_lab.commit_edits import build, run
from mercury_lab.commit_edits.changes import Change, ChangedText
from mercury_lab.commit_edits.position import Texts, read_list, scenario
from mercury_lab.commit_edits.shapes import shape_of
from mercury_lab.editing.edit_desk import Answer

from mercury_lsp.errors import UsageError
from tests.support import tiny
from tests.support.git_project import GitProject

MIT = "Permission is hereby granted, free of charge, to any person\n"

HEAD = "".join(f"// {n}: a line that says nothing but makes the file long enough to be read\n" for n in range(6))

VARS = HEAD + "var first = 1;\nvar second = 2;\nvar third = 3;\n// no var after this\nuse(first, second, third);\n"
CONSTS = VARS.replace("var f", "const f").replace("var s", "const s").replace("var t", "const t")

FIELDS = HEAD + "const size = {\n};\nuse(size.width, size.height, size.length);\n"
MORE_FIELDS = FIELDS.replace(
    "{\n", "{\n  width: options.width,\n  height: options.height,\n  length: options.length,\n"
)

SINCE = "2000-01-01"


@pytest.fixture
def mirror(tmp_path) -> Path:
    project = GitProject(tmp_path / "mirror" / "someone+toy")
    project.commit(
        "Start",
        {**dict.fromkeys(("a.js", "b.js"), VARS), **dict.fromkeys(("size.js", "area.js"), FIELDS), "LICENSE": MIT},
    )
    project.commit("Declare constants", {"a.js": CONSTS})
    project.commit("Declare constants there, too", {"b.js": CONSTS})
    project.commit("Add fields", {"size.js": MORE_FIELDS})
    project.commit("Add fields there, too", {"area.js": MORE_FIELDS})
    return tmp_path / "mirror"


@pytest.fixture
def found(mirror):
    return build.build(mirror, SINCE, None, 20, 20)


def change(start, end, new_start, new_end):
    return Change(0, start, end, new_start, new_end)


def changed(old: str, new: str) -> ChangedText:
    return ChangedText.of(change(0, old.count("\n"), 0, new.count("\n")), old.splitlines(True), new.splitlines(True))


@pytest.mark.parametrize(
    ("shape", "old", "new", "language_id"),
    [
        ("sibling", "var a = 1;\n", "const a = 1;\n", "javascript"),
        ("rename", "use(old_name, 1)\n", "use(new_name, 1)\n", "python"),
        ("parameter", "fetch(url)\n", "fetch(url, timeout)\n", "python"),
        ("type", "int size;\n", "size_t size;\n", "c"),
        ("type", "Box make(int a);\n", "Frame make(int a);\n", "cpp"),
        ("sibling", "size: 0,\n", "size: None,\n", "python"),
        ("type", "def f(a):\n", "def f(a: Path):\n", "python"),
        ("field", "", "  width: options.width,\n", "javascript"),
        ("import", "", "import os\n", "python"),
        ("delete", "print(a)\n", "", "python"),
        ("insertion", "", "log(a)\n", "python"),
    ],
)
def test_shapes(shape, old, new, language_id):
    assert shape_of(changed(old, new), language_id, (new or old).splitlines(True)) == shape


def test_the_list_has_no_text_and_reads_back(found, tmp_path):
    path = tmp_path / "list.json"
    build.write_list(path, found)
    text = path.read_text()
    assert read_list(path).positions == found.positions and read_list(path).sources == found.sources
    assert "options" not in text and "const" not in text


@pytest.mark.parametrize("name", ["pallets/flask", "gin-gonic/gin", "spf13/pflag"])
def test_held_out_projects_and_those_of_training_are_left_out(name):
    assert build.is_taken(name)


def test_a_clone_that_lacks_a_commit_is_an_error_that_names_it(found, mirror, tmp_path):
    GitProject(tmp_path / "empty" / "someone+toy").commit("Start", {"a.js": VARS})
    with Texts(tmp_path / "empty", found.sources) as texts, pytest.raises(UsageError, match=r"someone/toy.* lacks"):
        scenario(found.positions[0], texts)


def test_the_command_goes_on_from_its_record(found, mirror, tmp_path, monkeypatch, capsys):
    listed = tmp_path / "list.json"
    build.write_list(listed, found)
    asked = []

    def answer(positions, texts, record, options):
        known = {each.position for each in record.found}
        for at in positions:
            if at.name not in known:
                asked.append(at.name)
                shown = scenario(at, texts)
                record.add(run.judged(at, shown, "unasked", Answer(None, 1.0), options.deadline))
                yield shown, record.found[-1], Answer(None, 1.0)

    monkeypatch.setattr(run, "ask_server", answer)
    half = found.sources[0].half
    options = ["--mirror", str(mirror), "--list", str(listed), "--record", str(tmp_path / "r.jsonl"), "--json"]
    options += ["--ways", "unasked", *(["--held-out"] if half == "held-out" else [])]
    assert run.main([*options, "--limit", "1"]) == run.main(options) == 0
    record = json.loads("{\n" + capsys.readouterr().out.rpartition("}\n{\n")[2])
    assert record["half"] == half
    assert sorted(asked) == sorted({at.name for at in found.positions})


@pytest.mark.slow
def test_the_command_asks_a_server_in_both_ways(found, mirror, tmp_path, capsys):
    build.write_list(tmp_path / "list.json", found)
    options = [
        "--mirror",
        str(mirror),
        "--list",
        str(tmp_path / "list.json"),
        "--model",
        str(tiny.folder(tmp_path / "m")),
    ]
    half = ["--held-out"] if found.sources[0].half == "held-out" else []
    assert run.main([*options, *half, "--limit", "1", "--threads", "1", "--json"]) == 0
    ways = json.loads(capsys.readouterr().out)["ways"]
    assert {way: (groups["all"]["wanted"], groups["all"]["quiet"]) for way, groups in ways.items()} == {
        "unasked": (1, 1),
        "by key": (1, 1),
    }
