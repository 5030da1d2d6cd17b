"""A partly made edit: regions around its next step, and regions that stay."""

import random

from mercury_lab.training.commits.stage import Site, Stage, choose_example


def test_a_region_holds_whole_steps_and_a_quiet_one_holds_none():
    text = "a\nb\nc\nd\ne\n"
    stage = Stage("a.txt", "python", "x", text, (Site(0, 2, "A\n"), Site(2, 4, "B\n"), Site(6, 10, "D\nE\n")), 1)
    assert stage.next_edit(0, 2) is None
    whole = stage.next_edit(0, 3)
    assert whole is not None
    assert (whole.region_text, whole.rewritten) == ("b\nc\nd\ne\n", "B\nc\nD\nE\n")
    assert stage.quiet(2, 0, 0) is None
    assert stage.quiet(4, 0, 1) is None
    assert stage.quiet(0, 0, 1) is None
    done = Stage("a.txt", "python", "x", text, stage.steps, 3).quiet(4, 0, 1)
    assert done is not None
    assert done.is_quiet
    assert done.region_text == "c\nD\n"


def test_a_window_has_seven_lines_with_the_change_anywhere_in_them():
    lines = [f"line {n}\n" for n in range(30)]
    text, at = "".join(lines), sum(map(len, lines[:15]))
    stage = Stage("a.txt", "python", "x", text, (Site(0, 7, "LINE 0\n"), Site(at, at + 16, "new\n")), 1)
    above = set()
    for seed in range(60):
        example = choose_example(stage, False, lambda _: True, random.Random(seed), window=7)
        assert example is not None and example.region_text.count("\n") == 7
        assert "line 15\nline 16\n" in example.region_text and "new\n" in example.rewritten
        above.add(example.region_text.partition("line 15\n")[0].count("\n"))
    assert above == {0, 1, 2, 3, 4, 5}
    quiet = [choose_example(stage, True, lambda _: True, random.Random(seed), window=7) for seed in range(20)]
    assert max(each.region_text.count("\n") for each in quiet if each is not None) == 7
