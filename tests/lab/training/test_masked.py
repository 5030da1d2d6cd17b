"""Canvases: texts with a gap under noise, which masked models learn from."""

import random

import pytest
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.training.data.selection import source_files
from mercury_lab.training.examples.masked import Canvas, CanvasSampler, MaskedTokens, canvas
from mercury_lab.training.examples.mixture import Mixture

from tests.support import tiny, training_data

TOKENS = MaskedTokens(mask=900, expand=901, delete=902)


def revealed(found: Canvas, text: list[int]) -> list[int]:
    """The text after the masks got their tokens, and expanded ones the two that they stand for."""
    ids, targets = list[int](), {place: token for place, token, _ in found.targets}
    for place, token in enumerate(found.ids):
        wanted = targets.get(place, token)
        if wanted == TOKENS.expand:
            ids += text[len(ids) : len(ids) + 2]
        elif wanted != TOKENS.delete:
            ids.append(wanted)
    return ids


@pytest.mark.parametrize("seed", range(40))
def test_a_canvas_whose_masks_are_revealed_is_the_text(seed):
    rng = random.Random(seed)
    before, middle, after = list(range(1, 30)), list(range(100, 100 + 1 + seed % 20)), list(range(200, 240))
    whole, found = (canvas(before, middle, after, TOKENS, rng, length) for length in (None, 48))
    for each in filter(None, (whole, found)):
        first = each.ids[0] - 1
        text = [*before[first:], *middle, *after]
        shown = revealed(each, text)
        assert shown == text[: len(shown)] and len(shown) >= len(before) - first + len(middle)
        assert {each.ids[place] for place, _, _ in each.targets} == {TOKENS.mask}
        assert all(token in (TOKENS.mask, TOKENS.delete) or token in text for token in each.ids)
    assert found is None or len(found.ids) == 48


def test_canvases_are_masked_whole_expand_and_delete():
    rng = random.Random(1)
    many = [canvas([1, 2], list(range(100, 110)), [3], TOKENS, rng) for _ in range(200)]
    targets = [[token for _, token, _ in each.targets] for each in many]
    assert 0.2 < sum(TOKENS.expand in each for each in targets) / 200 < 0.9
    assert 0.3 < sum(TOKENS.delete in each for each in targets) / 200 < 0.6
    assert sum(each.ids.count(TOKENS.mask) == len(each.ids) - 3 for each in many) > 40


def test_windows_have_canvases_of_one_length_and_equal_generators_draw_equal_ones(tmp_path):
    tokenizer = Tokenizer(tiny.folder(tmp_path / "base", rank=0, vocab_size=502))
    mixture = Mixture(source_files(training_data.corpus(tmp_path / "corpus")))
    sampler = CanvasSampler(tokenizer, mixture, MaskedTokens.of(tokenizer, 502), gaps=4, length=32)
    assert sampler.tokens == MaskedTokens(501, 500, 0)
    drawn = [sampler.sample(random.Random(seed)) for seed in range(6)]
    assert {len(each.ids) for found in drawn for each in found} == {32}
    assert sampler.sample(random.Random(3)) == drawn[3] != drawn[4]
