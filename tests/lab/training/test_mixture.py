"""What a step draws: gaps, snippets, canvases."""

import random
from dataclasses import replace

import pytest
from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import path_block
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.training.data import corpus
from mercury_lab.training.data.sources import SourceFile
from mercury_lab.training.examples.gaps import GapSampler, GapSettings, TrainingGap, closing_bracket
from mercury_lab.training.examples.mixture import GapWindow, Mixture, WindowSampler
from mercury_lab.training.examples.snippets import snippet_blocks
from mercury_lab.training.optimisation.objective import Noise, corrupt, lay_rows
from mercury_lab.training.optimisation.steps import WriterSteps

from tests.support import tiny, training_data
from tests.support.training_data import CODE

CONFIG = tiny.config(rank=2)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return Tokenizer(training_data.base(tmp_path_factory.mktemp("mixture") / "base"))


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    return Mixture(corpus.read_files(training_data.corpus(tmp_path_factory.mktemp("mixture") / "corpus")))


def file(mixture, path):
    return next(f for f in mixture.files["python"] if f.path == path)


def gap(*target):
    return TrainingGap([], [20, 21], [], list(target))


def drawn(gaps, slots, noise, seed=0):
    return corrupt(CONFIG, GapWindow(gaps, slots), random.Random(seed), noise)


def test_gaps_hold_the_text_between_their_sides(tokenizer, mixture):
    of = file(mixture, "toy/a.py")
    gaps = GapSampler(tokenizer, random.Random(1)).gaps(of, 8)
    assert len(gaps) == 8
    for found in gaps:
        start, target = tokenizer.decode(found.near), tokenizer.decode(found.target)
        after = "".join(tokenizer.decode(list(block)) for block in found.suffix)
        assert start + target + after in of.text


@pytest.mark.parametrize(
    ("text", "position"),
    [("a, b) + c", 4), ("f(a), ')', b] = 1", 12), ("f(a)", None), ("'('", None)],
    ids=["call", "other brackets and strings pass", "own brackets", "none"],
)
def test_the_bracket_that_closes_what_a_gap_is_in(text, position):
    assert closing_bracket(text) == position


def test_the_same_generator_draws_the_same_windows_whatever_was_drawn_before(tokenizer, mixture):
    sampler = WindowSampler(tokenizer, mixture, 6, GapSettings())
    steps = WriterSteps(sampler, CONFIG, 2, Noise(), 7, packed=False)
    first = steps[5]
    steps[4], steps[6]
    assert [layout.gaps for layout in steps[5]] == [layout.gaps for layout in first]
    assert [layout.rows.ids.tolist() for layout in steps[5]] == [layout.rows.ids.tolist() for layout in first]
    assert [layout.gaps for layout in steps[4]] != [layout.gaps for layout in first]


def test_snippets_come_from_other_files_behind_their_path_and_share_words():
    others = [SourceFile("toy/a.py", "toy", "python", CODE), SourceFile("toy/z.py", "toy", "python", "zeta = 1\n" * 30)]
    for seed in range(10):
        blocks = snippet_blocks("result = add_13(value, 7)", others, random.Random(seed))
        assert 1 <= len(blocks) <= 2
        path, _, chunk = blocks[0].partition("\n")
        assert path + "\n" == path_block("toy/a.py", "python")
        assert chunk in split(CODE)
        assert "add_13" in chunk


def test_snippets_are_the_first_far_blocks_of_some_windows(tokenizer, mixture):
    of = file(mixture, "toy/b.py")
    assert {f.path for f in mixture.others(of, random.Random(0))} == {"toy/a.py"}
    opening = path_block("toy/a.py", "python")
    shown = 0
    for seed in range(100):
        sampler = GapSampler(tokenizer, random.Random(seed))
        found = sampler.gaps(of, 1, mixture.others(of, random.Random(seed)))[0]
        texts = [tokenizer.decode(list(block)) for block in found.far]
        snippets = [text for text in texts if text.startswith(opening)]
        assert texts[: len(snippets)] == snippets
        assert all(text.removeprefix(opening) in split(CODE) for text in snippets)
        shown += bool(snippets)
    assert 10 <= shown <= 30


def test_the_fourth_canvas_hides_what_the_random_one_shows():
    gaps = [gap(*range(20, 30)) for _ in range(20)]
    plain = replace(Noise(), full=0.0, complement=True)
    canvases = drawn(gaps, 16, plain)
    for number in range(20):
        settled, at_random, complement = [c for c in canvases if c.gap == number]
        assert settled.masked == sorted(settled.masked)
        assert [not hidden for hidden in at_random.masked] == complement.masked
    assert len(drawn(gaps, 16, replace(plain, complement=False))) == 40


def test_tailed_canvases_end_in_markers_that_count_together_like_one_token():
    (canvas,) = [c for c in drawn([gap(20, 21, 22)], 8, Noise(full=1.0, exact=0.0, fade=1.0)) if all(c.masked)]
    assert canvas.targets == [20, 21, 22, *[CONFIG.end_id] * 5]
    assert canvas.inputs == [CONFIG.mask_id] * 8
    assert sum(canvas.weights) == pytest.approx(4)


def test_exact_canvases_have_no_end_marker():
    for canvas in drawn([gap(20, 21, 22)], 8, Noise(full=1.0, exact=1.0)):
        assert canvas.targets == [20, 21, 22]


def test_a_share_of_visible_tokens_is_wrong_and_counts_fully():
    canvases = drawn([gap(*range(20, 40)) for _ in range(100)], 24, Noise(wrong=0.12, exact=1.0))
    shown = wrong = 0
    for canvas in canvases:
        for token, right, weight, hidden in zip(
            canvas.inputs, canvas.targets, canvas.weights, canvas.masked, strict=True
        ):
            if not hidden:
                shown += 1
                wrong += token != right
                assert weight == (pytest.approx(0.15) if token == right else 1.0)
    assert 0.08 < wrong / shown < 0.15


def test_rows_feed_the_last_prefix_token_and_predict_one_slot_ahead():
    gaps = [gap(30, 31), gap(32)]
    canvases = drawn(gaps, 4, Noise(full=1.0, exact=0.0, wrong=0.0))
    rows = lay_rows(gaps, canvases)
    assert rows.slots == 4 * len(canvases) == 4 * len(rows.ids) // 5
    for number, canvas in enumerate(canvases):
        mine = rows.canvas == number
        assert rows.ids[mine].tolist() == [21, *canvas.inputs]
        assert rows.target[mine].tolist()[:-1] == canvas.targets
        assert rows.weight[mine].tolist() == pytest.approx([*canvas.weights, 0.0])
        assert all(rows.ids[rows.guess] == CONFIG.mask_id)
    assert rows.guess.any()
