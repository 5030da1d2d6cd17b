"""Rewriting a region by masking its doubtful tokens, with a table in place of the network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest, RewriteRequest
from mercury_engine.decoding.diffusion.full_attention import FullAttentionDecoder
from mercury_engine.decoding.diffusion.region import rewritten, runs
from mercury_engine.text.common_prefix import common_prefix
from mercury_lab.engine import Engine, finished

from tests.support import masked

ABOVE, BELOW = "def f():\n", "    return x\n"


class Table:
    """Knows the right text: its tokens are likely the likelier, the nearer the number of slots is to the right one."""

    def __init__(self, engine: Engine, text: str) -> None:
        self.ids, self.vocabulary = engine.tokenizer.encode(text), len(engine.tokenizer.texts)
        self.passes = 0

    def overlap(self, sides) -> None:
        return None

    def read(self, sides, slots, overlap=None):
        self.passes += 1
        yield None
        whole, first = sides.around(slots), len(sides.before)
        sure = 0.99 * 0.8 ** abs(len(whole) - len(self.ids))
        fits = common_prefix(whole, self.ids), len(whole) - common_prefix(whole[::-1], self.ids[::-1])
        probability_SV = np.full((len(slots), self.vocabulary), (1 - sure) / (self.vocabulary - 1), np.float32)
        for slot, token in enumerate(slots):
            at = first + slot
            stays = not fits[0] <= at < fits[1]
            probability_SV[slot, token if stays else self.ids[min(at, len(self.ids) - 1)]] = 0.9 if stays else sure
        return np.log(probability_SV)

    reread = read


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Engine:
    folder, _ = masked.folder(tmp_path_factory.mktemp("region") / "model", "A2D-qwen2")
    return Engine.load(folder, device="cpu", dtype=torch.float32)


def rewrite(engine: Engine, present: str, right: str, **changes):
    decoder = engine.decoder
    assert isinstance(decoder, FullAttentionDecoder)
    request = RewriteRequest(present, near=ABOVE, suffix=(BELOW,), **changes)
    encode = engine.tokenizer.encode
    sides = replace(decoder.sides(REQUEST), before=tuple(encode(ABOVE)), after=tuple(encode(BELOW)))
    table = Table(engine, "")
    table.ids = [*encode(ABOVE), *encode(right), *encode(BELOW)]
    model = replace(decoder.model, cache=table)
    return finished(rewritten(model, request, sides), engine.reader), table


REQUEST = FillRequest(ABOVE, suffix=(BELOW,))


def test_a_text_without_doubtful_tokens_stays_after_one_pass(engine):
    text = "    x = 1\n"
    found, table = rewrite(engine, text, text)
    assert (found.text, found.hunks, found.is_finished, table.passes) == (text, (), True, 1)
    assert found.change_probability < 0.2


def test_a_doubtful_token_is_written_again(engine):
    found, _ = rewrite(engine, "    x = 1\n    y = 2\n", "    x = 1\n    z = 2\n")
    assert found.text == "    x = 1\n    z = 2\n"
    [hunk] = found.hunks
    assert (hunk.start, hunk.end, hunk.text) == (1, 2, "    z = 2\n")
    assert hunk.probability > 0.5 > hunk.stays


def test_a_run_may_grow_and_shrink(engine):
    longer = "    x = [1, 2, 3]\n"
    assert rewrite(engine, "    x = y\n", longer)[0].text == longer
    assert rewrite(engine, longer, "    x = y\n")[0].text == "    x = y\n"


def test_a_hunk_below_the_least_probability_is_left_out(engine):
    found, _ = rewrite(engine, "    y = 2\n", "    z = 2\n", give_up_below=0.999)
    assert (found.text, found.hunks) == ("    y = 2\n", ())


def test_doubtful_tokens_a_few_apart_are_one_run():
    doubtful = np.array([False, True, False, True, False, False, False, True])
    assert [*runs(doubtful)] == [(1, 4), (7, 8)]


def test_a_masked_model_rewrites_through_the_engine(engine):
    found = engine.rewrite(RewriteRequest("    x = 1\n", near=ABOVE, suffix=(BELOW,)))
    assert found.is_finished and found.steps > 0
