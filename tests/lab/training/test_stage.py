"""A partly made edit: regions around its next step, and regions that stay."""

from mercury_lab.training.commits.stage import Site, Stage


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
