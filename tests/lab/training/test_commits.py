"""Commits become edits in steps: what a user could have made is kept, with nothing of what evaluation uses."""

import random

import pytest
from mercury_lab.training.commits import build, commit_edit, repositories
from mercury_lab.training.commits.build import Collector
from mercury_lab.training.commits.commit_edit import CommitEdit, CommitFile, Step
from mercury_lab.training.commits.examples import edit_example
from mercury_lab.training.commits.moments import Moment, begun, moments
from mercury_lab.training.commits.repositories import Repository
from mercury_lab.training.data.contamination import Fingerprints
from mercury_lab.training.data.sources import HeldOut, SourceError

from tests.support import tiny
from tests.support.git_project import GitProject

FIRST = "def load(path):\n    return read(path)\n\n\n" + "".join(f"number_{n} = {n}\n" for n in range(20))
LOAD = FIRST + "\n\ndef show(path):\n    print(load(path))\n"
USE = (
    "from load import load\n\n\ndef main(argv):\n    value = load(argv[1])\n    print(value, argv)\n    return value\n"
)


@pytest.fixture
def project(tmp_path) -> GitProject:
    made = GitProject(tmp_path / "mirror" / "someone+toy")
    made.commit("Start", {"load.py": LOAD, "use.py": USE, "README.md": "toy\n"})
    return made


def collected(project: GitProject, known: Fingerprints | None = None) -> tuple[list[CommitEdit], dict[str, int]]:
    collector = Collector(known, 100)
    edits = collector.collect(Repository("someone/toy", project.head, "MIT"), project.folder / ".git")
    return edits, dict(collector.dropped)


def with_mode(text: str) -> str:
    return text.replace("load(path)", "load(path, mode)").replace("load(argv[1])", "load(argv[1], 'r')")


def test_a_commit_becomes_the_old_files_and_its_hunks_as_steps(project):
    project.commit("Add a mode", {"load.py": with_mode(LOAD), "use.py": with_mode(USE), "README.md": "a mode\n"})
    (edit,), _ = collected(project)
    assert [file.path for file in edit.files[: edit.changed]] == ["load.py", "use.py"]
    assert edit.files[0].text == LOAD
    assert [(step.file, step.text) for step in edit.steps] == [
        (0, "def load(path, mode):\n"),
        (0, "    print(load(path, mode))\n"),
        (1, "    value = load(argv[1], 'r')\n"),
    ]


@pytest.mark.parametrize(
    ("subject", "files", "reason"),
    [
        ("Add a file", {"load.py": with_mode(LOAD), "new.py": USE}, "adds, removes or renames files"),
        ("Move it", {"load.py": None, "moved.py": LOAD}, "adds, removes or renames files"),
        ("Run black", {"load.py": with_mode(LOAD)}, "made by a program"),
        ("Use tabs", {"load.py": LOAD.replace("    ", "\t")}, "white space only"),
        ("Rewrite", {"load.py": LOAD + "".join(f"value_{n} = {n}\n" for n in range(40))}, "long hunk"),
        ("Document", {"README.md": "more\n"}, "no code"),
        ("Add a key", {"use.py": USE + "api_key = 'a8Kd03jfLs92mXzQpw71vRtY'\n"}, "secret"),
    ],
)
def test_a_commit_that_nobody_types_is_dropped_with_its_reason(project, subject, files, reason):
    _, before = collected(project)
    project.commit(subject, files)
    edits, dropped = collected(project)
    assert edits == []
    assert dropped[reason] == before.get(reason, 0) + 1


def test_held_out_text_and_paths_are_dropped(project):
    words = " ".join(f"held_{n}" for n in range(200))
    project.commit("Add words", {"use.py": USE + f'TEXT = """\n{words[:900]}\n"""\n'})
    project.commit("Start", {"click/core.py": USE})
    project.commit("Change both", {"use.py": USE.replace("value", "result") + f'TEXT = """\n{words[:900]}\n"""\n'})
    project.commit("Change it", {"click/core.py": USE.replace("value", "result")})
    edits, dropped = collected(project, Fingerprints.of([words]))
    assert all(not file.path.startswith("click") and "held_1" not in file.text for e in edits for file in e.files)
    assert dropped["held out"] == 1
    assert dropped["held-out part"] == 1


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ('name = "pallets/flask"\ncommit = "1"\nlicence = "BSD-3-Clause"', HeldOut),
        ('name = "a-fork/Rich"\ncommit = "1"\nlicence = "MIT"', HeldOut),
        ('name = "someone/kept"\ncommit = "1"\nlicence = "MIT"', HeldOut),
        ('name = "someone/free"\ncommit = "1"\nlicence = "GPL-3.0-only"', SourceError),
        ('name = "someone/free"\ncommit = "1"\nlicence = "MIT"\nsplit = "some"', SourceError),
    ],
)
def test_a_repository_of_evaluation_or_without_a_permissive_licence_is_refused(tmp_path, entry, error):
    listed = tmp_path / "repositories.toml"
    listed.write_text(f'[held_out]\nnames = ["someone/kept"]\n[[repository]]\n{entry}\n')
    with pytest.raises(error):
        repositories.load(listed)


def test_the_same_clone_gives_the_same_files(project, tmp_path):
    project.commit("Add a mode", {"load.py": with_mode(LOAD), "use.py": with_mode(USE)})
    listed = [Repository("someone/toy", project.head, "MIT", "validation")]
    for name in ("one", "two"):
        build.build(listed, tmp_path / "mirror", tiny.CODE, tmp_path / name, 10)
    packed = [(tmp_path / name / "validation.jsonl.gz").read_bytes() for name in ("one", "two")]
    assert packed[0] == packed[1]
    assert len(list(commit_edit.read(tmp_path / "one" / "validation.jsonl.gz"))) == 1


EDIT = CommitEdit(
    "someone/toy",
    "c0",
    (CommitFile("use.py", "python", USE), CommitFile("load.py", "python", LOAD)),
    2,
    (
        Step(0, 4, 5, "    value = load(argv[1], 'r')\n"),
        Step(0, 6, 6, "    # done\n"),
        Step(1, 0, 1, "def load(path, mode):\n"),
    ),
)


def test_a_third_of_the_moments_or_more_are_quiet():
    drawn = [moment for seed in range(60) for moment in moments(EDIT, random.Random(seed), 3, None)]
    assert 3 * sum(moment.is_quiet for moment in drawn) >= len(drawn)
    assert all(moment.open == () for moment in drawn if moment.is_quiet)


@pytest.mark.parametrize("seed", range(12))
def test_a_moment_becomes_an_example_whose_document_is_the_present_one(seed):
    rng = random.Random(seed)
    for moment in [*moments(EDIT, rng, 3, None), begun(EDIT, rng)]:
        example = edit_example(moment, rng, lambda example: True)
        number = moment.document
        assert example.text == moment.documents[number].text
        assert example.is_quiet == moment.is_quiet
        assert len(example.history) == len(moment.made)
        assert [change.path for change in example.history] == [
            None if step.file == number else EDIT.files[step.file].path for step in moment.made
        ]


@pytest.mark.parametrize(("below", "added"), [(2, "    # done\n"), (1, "")])
def test_a_region_around_a_change_holds_the_whole_steps_that_are_left_in_it(below, added):
    found = edit_example(Moment(EDIT, (0, 1, 2), 1), random.Random(), lambda _: True, around=(0, below))
    lines = ["    value = load(argv[1], 'r')\n", "    print(value, argv)\n", "    return value\n"][: below + 1]
    assert (found.region_text, found.rewritten) == ("".join(lines), "".join((*lines[:2], added, *lines[2:])))
