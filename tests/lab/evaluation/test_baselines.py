"""What Mercury is compared with: copying, and the reader alone."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from mercury_engine.api import Fill, FillRequest
from mercury_engine.utility import Utility
from mercury_lab.evaluation import baselines
from mercury_lab.evaluation.gaps import Gap, HeldOutFile, gap_at
from mercury_lab.evaluation.infill import answer_every_way, figures_of

from tests.support import scripted_network, tiny

CODE = tiny.SAMPLE[:1500]


def gap(before: str, truth: str = "?", after: str = "", **changes) -> Gap:
    document = HeldOutFile(Path("a.py"), "toy/a.py", "python", before + truth + after)
    made = gap_at(document, len(before), len(before) + len(truth), "rest_of_line")
    return replace(made, request=replace(made.request, **changes))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("tiny") / "model"))


def test_a_gap_is_written_once_for_all_utilities_and_cut_as_each_alone_would_be(tmp_path):
    engine, network = scripted_network.engine(tmp_path / "model")
    head, before = "def total(rows):", "def total(rows):\n    return "
    written = "\n    return sum(rows)\n"

    def script(tokens: list[int]) -> dict[int, float]:
        text = engine.tokenizer.decode(tokens).rpartition(head)[2]
        goes_on = written.startswith(text) and text != written
        return {engine.tokenizer.encode(written[len(text) :])[0]: 0.95} if goes_on else {}

    network.script = script
    here = gap(before, after="\n", utility=Utility(6.0, 4.0, 0.35))
    alone = engine.fill(here.request)
    strict = replace(here, request=replace(here.request, utility=Utility(6.0, 40.0, 0.35)))
    fill = baselines.once_filler(engine)
    assert (fill(here).text, fill(here).confidence) == (alone.text, pytest.approx(alone.confidence))
    assert alone.text == "sum(rows)"
    passes = len(network.passes)
    fill(strict)
    assert len(network.passes) == passes


def test_copying_continues_the_longest_repeated_context():
    before = "width = self.left\nheight = other.left + 1\nheight = other.left"
    assert baselines.copying(gap(before)).text == " + 1"


def test_of_equally_long_repeats_the_nearest_is_copied():
    before = "x = measure(1)\nx = measure(2)\n\nx = measure("
    assert baselines.copying(gap(before)).text == "2)"


def test_text_behind_the_gap_is_copied_too():
    assert baselines.copying(gap("value = measure(", "3)", "\nvalue = measure(4)\n")).text == "4)"


def test_nothing_is_copied_behind_context_that_is_new():
    fill = baselines.copying(gap("left = 1\nright"))
    assert (fill.text, fill.steps) == ("", 0)


def test_a_longer_repeat_is_surer_and_the_gate_applies():
    short, long = (baselines.copying(gap(f"{text}(1)\n{text}(")) for text in ("measure", "measure_the_whole_thing"))
    assert short.confidence < long.confidence < 1
    assert baselines.copying(gap("measure(1)\nmeasure(", give_up_below=0.9)).text == ""


def test_the_reader_alone_sees_one_run_of_plain_text_before_the_gap():
    asked: list[FillRequest] = []
    made = gap(CODE, "x", "\nafter = 1\n")
    engine = SimpleNamespace()
    engine.fill = lambda request: asked.append(request) or Fill("y", 0.5, 1, 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "left_to_right", lambda _: engine)
        baselines.reader_filler(engine)(made)
    assert [(request.near, request.far, request.suffix) for request in asked] == [(CODE, (), ())]


def test_the_reader_alone_writes_several_lines_until_the_one_that_follows():
    answers = iter(("a = 1", "    b = 2", "    c = 3", "never"))
    engine = SimpleNamespace(fill=lambda request: Fill(next(answers), 0.5, 2, 0.25))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "left_to_right", lambda _: engine)
        made = gap("def f():\n    ", "a = 1\n    b = 2", "\n    c = 3\n", multiline=True)
        found = answer_every_way(
            made,
            {
                "mercury": baselines.reader_filler(engine),
                "left_to_right": baselines.copying,
                "copy": baselines.copying,
            },
        )
    assert (found.right["mercury"], found.fills["mercury"].steps, found.fills["mercury"].elapsed) == (True, 6, 0.75)
    figures = figures_of([found])
    assert figures is not None
    assert (figures.exact_match, figures.copy_exact_match) == (1.0, 0.0)
    assert figures_of([]) is None


def test_the_reader_alone_leaves_the_engine_its_denoiser(engine):
    alone = baselines.left_to_right(engine)
    assert alone.parts.denoiser is None and alone.parts.options.lookahead == 0
    assert engine.parts.denoiser is not None
