"""Places for the next edit: the changes point to candidates, and the head learns which of them is next."""

import random

import numpy as np
import pytest
from mercury_engine.places.candidates import (
    MAX_CANDIDATES,
    TOLERANCE_LINES,
    Candidate,
    Kind,
    candidates,
    names_of,
    occurrences,
)
from mercury_engine.places.cores import Core, core_of
from mercury_engine.places.features import FEATURES, features
from mercury_engine.places.head import PlaceHead, distinct
from mercury_engine.places.situation import LineChange, Situation
from mercury_engine.places.whole_document import WholeDocument
from mercury_lab.training.commits.commit_edit import CommitEdit, CommitFile, Step
from mercury_lab.training.commits.moments import Moment
from mercury_lab.training.ranking.cases import case_of, cases, covers
from mercury_lab.training.ranking.figures import candidate_figures, place_figures
from safetensors.numpy import save_file

TEXT = """import os


def first(count):
    total = count + 1
    return total


def filler():
    a = 1
    b = 2
    c = 3
    d = 4
    return a, b, c, d


def second(number):
    shown = first(number)
    return shown
"""


def document(text: str, path: str = "app.py") -> WholeDocument:
    return WholeDocument(path, tuple(text.splitlines(keepends=True)))


def renamed(text: str = TEXT) -> Situation:
    """`first` was renamed at its definition."""
    lines = list(document(text).lines)
    old, lines[3] = lines[3], "def leading(count):\n"
    return Situation((document("".join(lines)),), (LineChange(0, 3, (old,), (lines[3],)),), (0, 3))


def listed(situation: Situation) -> list[Candidate]:
    names = names_of(situation)
    return candidates(situation, names, occurrences(situation, names))


def test_a_use_of_the_name_that_was_taken_away_is_a_candidate():
    (use,) = [each for each in listed(renamed()) if each.kinds & Kind.STALE]
    assert (use.document, use.line) == (0, 17)


def test_a_use_in_another_document_is_a_candidate():
    situation = renamed()
    other = document("from app import first\n\nprint(first(1))\n", "other.py")
    both = Situation((*situation.documents, other), situation.changes, situation.cursor)
    assert {(each.document, each.line) for each in listed(both) if each.kinds & Kind.STALE} == {(0, 17), (1, 0), (1, 2)}


def test_part_of_a_word_is_no_use():
    text = TEXT.replace("first(number)", "first_of(number)")
    assert not [each for each in listed(renamed(text)) if each.kinds & Kind.STALE]


def test_a_call_of_a_function_whose_body_changed_is_a_candidate():
    lines = list(document(TEXT).lines)
    old, lines[4] = lines[4], "    total = count + 2\n"
    situation = Situation((document("".join(lines)),), (LineChange(0, 4, (old,), (lines[4],)),), (0, 4))
    assert 17 in {each.line for each in listed(situation) if each.kinds & Kind.SCOPE}


def test_lines_of_the_changes_themselves_are_no_candidates():
    assert 3 not in {each.line for each in listed(renamed())}


def test_there_are_never_more_candidates_than_the_bound_however_long_the_document():
    long = TEXT + "".join(f"def f{n}():\n    return first({n}) + first({n + 1})\n\n\n" for n in range(5_000))
    assert 0 < len(listed(renamed(long))) <= MAX_CANDIDATES


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("    async def get(self):\n", "get"),
        ("export const load = async (path: string) => {\n", "load"),
        ("func (s *Server) Close() error {\n", "Close"),
        ("pub(crate) fn read<T>(input: T) -> u8 {\n", "read"),
        ("  public static int count(String text) {\n", "count"),
        ("static int read_all(FILE *file,\n", "read_all"),
        ("local function open(path)\n", "open"),
    ],
)
def test_definitions_are_seen_in_many_languages(line, name):
    found = WholeDocument("a", ("\n", line, "    return 1\n")).headers
    assert [(header.line, header.name) for header in found] == [(1, name)]


@pytest.mark.parametrize("line", ["if (ready) {\n", "return call(a, {\n", "for (;;) {\n", "total = count\n"])
def test_statements_are_no_definitions(line):
    assert WholeDocument("a", (line,)).headers == []


def test_a_line_is_in_the_innermost_definition():
    inner = document("class A:\n    def get(self):\n        x = 1\n\n        return x\n\n    y = 2\nz = 3\n")
    assert [header.name if (header := inner.scope(line)) else None for line in range(8)] == [
        "A", "get", "get", "get", "get", "A", "A", None,
    ]  # fmt: skip


def test_a_candidate_covers_what_is_within_reach():
    at = Candidate(0, 10, Kind.NEAR)
    assert covers(at, 0, 10 + TOLERANCE_LINES, 20)
    assert not covers(at, 0, 11 + TOLERANCE_LINES, 20)
    assert covers(at, 0, 5, 11 - TOLERANCE_LINES)
    assert covers(at, 0, 11 + TOLERANCE_LINES, 11 + TOLERANCE_LINES), "a gap touches the lines on both sides"
    assert not covers(at, 1, 10, 11)


def test_features_do_not_see_the_steps_that_are_left():
    files = (CommitFile("app.py", "python", TEXT),)
    made, left = Step(0, 3, 4, "def leading(count):\n"), Step(0, 17, 18, "    shown = leading(number)\n")
    one = case_of(Moment(CommitEdit("a/b", "c", files, 1, (made, left)), (0, 1), 1))
    none = case_of(Moment(CommitEdit("a/b", "c", files, 1, (made,)), (0,), 1))
    assert np.array_equal(one.rows, none.rows)
    assert one.is_right.any()
    assert not none.is_right.any()


def test_a_rare_name_is_a_candidate_before_a_common_one():
    lines = [f"    common({n})\n" for n in range(35)] + [f"    other({n})\n" for n in range(60)]
    lines += ["    rare()\n"] + [f"    common({n})\n" for n in range(4)]
    old = "    rare(); common(1)\n"
    situation = Situation(
        (document("".join(["    x()\n", *lines])),), (LineChange(0, 0, (old,), ("    x()\n",)),), (0, 0)
    )
    found = listed(situation)
    assert 96 in {each.line for each in found}
    assert len(found) <= MAX_CANDIDATES


def test_the_end_of_the_test_of_a_changed_file_is_a_candidate():
    code, test = document(TEXT, "src/app.py"), document("def test():\n    assert 1\n" * 9, "tests/test_app.py")
    other = document("x = 1\n" * 9, "src/other.py")
    situation = Situation((code, test, other), (LineChange(0, 4, ("    a\n",), (TEXT.split("\n")[4] + "\n",)),), (0, 4))
    ends = {each.document for each in listed(situation) if each.kinds & Kind.END}
    assert ends == {0, 1}


def row_of(situation: Situation, line: int) -> dict[str, float]:
    """The features of the candidate on a line of the first document."""
    names = names_of(situation)
    found = occurrences(situation, names)
    places = candidates(situation, names, found)
    at = next(n for n, each in enumerate(places) if (each.document, each.line) == (0, line))
    return dict(zip(FEATURES, features(situation, places, names, found)[at].tolist(), strict=True))


def test_a_line_like_the_replaced_one_is_marked():
    text = "".join(f"def f{n}():\n    x = open(path, 'r')\n    return load(x, {n})\n\n\n" for n in range(3))
    lines = list(document(text).lines)
    old, lines[1] = lines[1], "    x = open(path, 'rb')\n"
    situation = Situation((document("".join(lines)),), (LineChange(0, 1, (old,), (lines[1],)),), (0, 1))
    assert row_of(situation, 6)["has_old"] == 0, "the replaced text is one letter, too short to be looked for"
    assert row_of(situation, 6)["is_shape_removed"] == row_of(situation, 6)["equals_removed"] == 1
    assert row_of(situation, 3)["is_shape_removed"] == 0


def test_a_region_with_the_parts_of_the_changed_names_shares_more_of_the_change():
    filler = "".join(f"def filler_{n}():\n    return {n}\n\n\n" for n in range(5))
    text = "    readAllLines(path)\n" + filler + "def read_all_lines(path):\n    pass\n" + filler
    situation = Situation((document(text),), (LineChange(0, 0, ("    first(path)\n",), (text[:23],)),), (0, 0))
    twin = text[: text.index("def read_all")].count("\n")
    assert row_of(situation, twin)["region_changed_of_most"] == 1
    assert row_of(situation, 5)["region_changed"] < row_of(situation, twin)["region_changed"]


@pytest.mark.parametrize(
    ("old", "new", "core"),
    [
        ("    a = open(path)\n", "    a = open(path, 'r')\n", Core("path", "open(")),
        ("x = first(1)\n", "x = second(1)\n", Core("first", "x =")),
        ("x = first\n", "", Core("", "")),
    ],
)
def test_the_core_of_a_change_is_its_replaced_words(old, new, core):
    assert core_of(LineChange(0, 0, (old,) if old else (), (new,) if new else ())) == core


def test_every_candidate_has_a_finite_row():
    situation = renamed()
    names = names_of(situation)
    found = occurrences(situation, names)
    places = candidates(situation, names, found)
    rows = features(situation, places, names, found)
    assert rows.shape == (len(places), len(FEATURES))
    assert np.isfinite(rows).all()
    assert features(situation, [], names, found).shape == (0, len(FEATURES))


def commit(number: int) -> CommitEdit:
    """A rename with one use left; the use is far away, and where it is differs."""
    rng = random.Random(number)
    parts = [f"def part_{n}(value):\n    held = value + {n}\n    return held\n\n\n" for n in range(16)]
    at = rng.randrange(8, 16)
    parts[at] = parts[at].replace("value +", "old_name(value) +")
    text = "def old_name(value):\n    return value\n\n\n" + "".join(parts)
    use = text[: text.index("old_name(value) +")].count("\n")
    line = text.split("\n")[use].replace("old_name", "new_name")
    steps = (Step(0, 0, 1, "def new_name(value):\n"), Step(0, use, use + 1, line + "\n"))
    return CommitEdit("a/b", f"c{number}", (CommitFile("app.py", "python", text),), 1, steps)


def test_a_trained_head_finds_the_use_that_is_left_and_is_quiet_when_none_is(tmp_path):
    torch = pytest.importorskip("torch")
    from mercury_lab.training.ranking.network import Batch
    from mercury_lab.training.ranking.run import fit

    found = list(cases([commit(n) for n in range(40)], 1))
    network, losses = fit(found[:64], found[64:], 25, 0)
    assert losses[-1] < losses[0]
    save_file(network.weights(), tmp_path / "head.safetensors")
    head = PlaceHead.load(tmp_path / "head.safetensors")
    fresh = list(cases([commit(n) for n in range(40, 60)], 1))
    ranked = [distinct(case.candidates, head.probabilities(case.rows)[:-1], 3) for case in fresh]
    figures = place_figures(fresh, ranked)
    assert candidate_figures(fresh)["next_covered"][0] == 1
    assert figures["first_is_next"][0] > 0.9
    assert figures["by_gate"]["0.5"]["quiet"][0] > 0.9
    for case in fresh[:5]:
        with torch.inference_mode():
            expected = network(Batch([case])).exp()[0].numpy()
        np.testing.assert_allclose(head.probabilities(case.rows), expected, atol=1e-5)
        places = head.places(case.moment.situation)
        assert [place.candidate for place in places] == [p.candidate for p in ranked[fresh.index(case)]]


def test_nothing_is_ranked_without_a_change():
    head = PlaceHead(_weights())
    assert head.places(Situation((document(TEXT),), (), (0, 0))) == []
    assert head.probabilities(np.empty((0, len(FEATURES)), np.float32)).tolist() == [1.0]


def test_places_within_reach_of_a_better_one_add_to_its_chance():
    near, far = [Candidate(0, line, Kind.NEAR) for line in (5, 7)], Candidate(0, 30, Kind.NEAR)
    places = distinct([*near, far], np.array([0.3, 0.2, 0.4], np.float32), 3)
    assert [(place.candidate.line, round(place.probability, 3)) for place in places] == [(5, 0.5), (30, 0.4)]


def test_neighbours_that_are_likely_together_come_before_a_likelier_single_place():
    near, far = [Candidate(0, line, Kind.NEAR) for line in (5, 7)], Candidate(0, 30, Kind.NEAR)
    places = distinct([*near, far], np.array([0.25, 0.3, 0.4], np.float32), 3)
    assert [(place.candidate.line, round(place.probability, 3)) for place in places] == [(7, 0.55), (30, 0.4)]


def _weights() -> dict[str, np.ndarray]:
    count = len(FEATURES)
    shapes = {"mean": count, "scale": count, "place_in": (count, 2), "place_in_bias": 2, "place_out": 2}
    shapes |= {"nowhere_in": (count, 2), "nowhere_in_bias": 2, "nowhere_out": 2, "nowhere_bias": 1}
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("line", ["*" * 400, "&* " * 300, "a " * 500, "const x" + " = a" * 300, "f(" * 400, "a<" * 400])
def test_a_line_that_begins_nothing_is_read_in_one_go(line):
    """A pattern that tries every way to split such a line would take longer than the world has."""
    assert WholeDocument("a.c", (line + ";\n", "int main(void) {\n")).headers[-1].name == "main"
