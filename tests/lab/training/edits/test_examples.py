"""An example leads from the edit history to the next edit."""

import ast
import random

from mercury_engine.prompt.edit_layout import (
    history_block,
)
from mercury_lab.training.edits import rename
from mercury_lab.training.edits.plan import Site, applied
from mercury_lab.training.edits.stage import Stage, choose_example, steps

from tests.support.edit_samples import SHOP, plans, sampled, shop


def test_every_kind_is_drawn_and_every_edit_changes_its_region(examples):
    kinds = {example.kind for example in examples if not example.is_quiet}
    assert kinds >= {"rename", "add_parameter", "change_type", "wrap", "extract", "import", "async", "field", "key"}
    for example in examples:
        assert example.region_text
        assert example.region[0] == 0 or example.current[example.region[0] - 1] == "\n"
        assert example.region_text.endswith("\n") or example.region[1] == len(example.current)


def test_the_history_leads_from_before_to_the_current_text(examples):
    for example in examples:
        text = example.before
        for change in example.history:
            if change.path is None:
                assert text.startswith(change.removed, change.start)
                text = text[: change.start] + change.inserted + text[change.start + len(change.removed) :]
        assert text == example.current
        assert example.history


def test_a_rewritten_region_leaves_text_that_parses(examples):
    for example in examples:
        current, (start, end) = example.current, example.region
        assert ast.parse(example.before)
        assert ast.parse(current[:start] + example.rewritten + current[end:])
        assert ast.parse(example.after)


def test_all_edits_together_lead_to_the_text_after(examples):
    """The region's new lines are those of the finished text."""
    for example in examples:
        assert example.is_quiet or example.rewritten in example.after


def test_a_quarter_has_no_edit(tokenizer):
    found = sampled(tokenizer, 100)
    quiet = sum(example.is_quiet for example in found)
    assert len(found) > 700
    assert 0.2 < quiet / len(found) < 0.3


def test_the_target_is_not_in_the_history(examples):
    """No change of the history lies on lines that the target changes, as they are in the current text."""
    for example in examples:
        if example.is_quiet:
            continue
        changed = _changed(example)
        places: list[list[int]] = []
        for change in (c for c in example.history if c.path is None):
            shift = len(change.inserted) - len(change.removed)
            for place in places:
                if change.start + len(change.removed) <= place[0]:
                    place[:] = [place[0] + shift, place[1] + shift]
            places.append([change.start, change.start + len(change.inserted)])
        assert not any(start < changed[1] and changed[0] < end for start, end in places)


def _changed(example) -> tuple[int, int]:
    """The lines of the current text that the target changes."""
    old, new = (text.splitlines(keepends=True) for text in (example.region_text, example.rewritten))
    head = tail = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = example.region[0] + sum(map(len, old[:head]))
    return start, example.region[1] - sum(map(len, old[len(old) - tail :]))


def test_the_import_is_the_target_and_its_uses_are_the_history(tokenizer):
    text = SHOP + "\n\nprint(1)\nprint(round_price(2))\n"
    found = [e for e in sampled(tokenizer, 60, shop(text)) if e.kind == "import" and not e.is_quiet]
    twice = [e for e in found if "import round_price" in e.rewritten and "import round_price" not in e.region_text]
    assert twice
    for example in found:
        assert set(example.rewritten.splitlines()) - set(example.region_text.splitlines()) <= {
            line for line in text.splitlines() if "import" in line
        }
    for example in twice:
        assert sum("round_price(" in change.inserted for change in example.history) == 2


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


def test_the_history_of_another_file_names_it_and_does_not_touch_the_document(examples):
    found = [example for example in examples if example.history[0].path]
    assert found
    for example in found:
        assert example.before == example.current
        paths = {change.path for change in example.history}
        assert len(paths) == 1
        assert paths != {example.path}
        assert f"@@ {example.history[-1].path}" in history_block(example.history, "python")


def test_a_stage_with_steps_in_any_order_ends_at_the_same_text():
    made = next(p for p in plans(rename, SHOP) if len(steps(p)) > 3)
    for seed in range(10):
        order = steps(made)
        random.Random(seed).shuffle(order)
        for done in range(len(order) + 1):
            stage = Stage("a.py", "python", "rename", SHOP, tuple(order), done)
            assert applied(stage.current, stage.open) == applied(SHOP, made.sites)
            assert [stage.current[slice(*span)] for span in stage.made] == [step.text for step in order[:done]]
