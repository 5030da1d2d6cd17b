"""Masked diffusion: what a step unmasks, within which limits, and what is accepted from the left."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.api import Control, FillRequest, RewriteRequest
from mercury_engine.decoding.diffusion.denoise import accept, reveal
from mercury_engine.decoding.diffusion.layouts import Around
from mercury_engine.decoding.diffusion.rules import Rule, chosen, entropy_bound
from mercury_engine.decoding.diffusion.texts import GapText
from mercury_engine.decoding.gap_rules import SlotLimits
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.errors import ModelCorrupt, ModelNotFound, RequestError
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.asking import told

SETTINGS = {"decoding": {"bound": 6.0}}

REVEAL_ALL = entropy_bound(100.0)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tiny.folder(tmp_path_factory.mktemp("masked"))
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    return tiny.load(folder)


def text_of(engine, slots) -> GapText:
    """A text whose slots are masked."""
    layout, request = engine.decoder.layout, FillRequest("", multiline=True)
    text = GapText(Hypothesis(engine.decoder.rules, request, [], slots), layout.tokens, layout.ends, Control())
    text.open(slots)
    return text


def opinion(engine, tokens, sureness=9.0):
    """Log-probabilities [S,V] that prefer these tokens, most strongly the first."""
    size = len(engine.decoder.rules.texts) + 2
    logits_SV = torch.zeros(len(tokens), size)
    for slot, token in enumerate(tokens):
        logits_SV[slot, token] = sureness + (len(tokens) - slot) / 10
    return logits_SV.log_softmax(-1).numpy()


def decide(text, logp_SV, rule: Rule = REVEAL_ALL):
    reveal(text, told(logp_SV, text.hidden(len(text.canvas))), rule)


def settle(engine, text):
    accept(text, engine.decoder.layout, Around())


def tokens_of(engine, *texts):
    return [engine.decoder.rules.texts.index(text) for text in texts]


def test_every_slot_behind_an_end_marker_is_an_end_marker(engine):
    end = engine.decoder.rules.end_id
    (a,) = tokens_of(engine, "a")
    text = text_of(engine, 4)
    decide(text, opinion(engine, [a, end, a, a]))
    assert text.canvas.ids.tolist() == [a, end, end, end]
    settle(engine, text)
    assert (text.written.ended, text.written.ids) == (True, [a])


def test_limits_hide_tokens_that_misspell_break_the_line_or_were_wrong(engine):
    rules = engine.decoder.rules
    allowed = {
        rules.texts[i] for i, hidden in enumerate(rules.hidden_tokens(SlotLimits("re", False, None))[:-2]) if not hidden
    }
    assert allowed and all("re".startswith(text) or text.startswith("re") for text in allowed)
    (line,) = tokens_of(engine, "\n")
    (a,) = tokens_of(engine, "a")
    for multiline in (False, True):
        row = rules.hidden_tokens(SlotLimits("", multiline, a))
        assert (bool(row[line]), bool(row[a])) == (not multiline, True)
        assert bool(row[rules.mask_id]) and not row[rules.end_id]
    assert rules.hidden_tokens(SlotLimits("re", True))[rules.end_id]


def test_steps_are_limited_and_the_last_one_unmasks_every_slot(engine):
    request = FillRequest(near="x = 1", suffix=("\n",), max_slots=12, multiline=True)
    free, once = engine.varied(DiffusionOptions(bound=0.0)).fill(request), engine.fill(replace(request, max_steps=1))
    assert free.steps > once.steps == 1
    _, views = tiny.watched(engine, replace(request, max_steps=1))
    assert all(slot.state in ("committed", "end") for slot in views[-1])


@tiny.needs_kernels
def test_canvases_are_denoised_with_quantised_weights_too(tmp_path):
    folder = tiny.folder(tmp_path, **tiny.WIDE)
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    native = Engine.load(folder, device="cpu")
    assert native.backend == "native"
    fill, views = tiny.watched(native, FillRequest(near="x = 1", suffix=("\n",), max_slots=8, multiline=True))
    assert fill.steps == len(views) - 1 > 0
    assert all(slot.state in ("committed", "end") for slot in views[-1])


def test_regions_are_not_rewritten(engine):
    assert engine.edit_format is None
    with pytest.raises(RequestError, match="rewrites no regions"):
        engine.rewrite(RewriteRequest("x = 1\n"))


def test_a_masked_model_without_its_adapter_is_not_found(tmp_path):
    folder = tiny.folder(tmp_path)
    (folder / "adapter.safetensors").unlink()
    with pytest.raises(ModelNotFound, match="with which this model denoises"):
        tiny.load(folder)


@pytest.mark.parametrize(("rank", "options"), [(4, {"bound": -1}), (4, {"lookahead": 3}), (0, {"bound": 1.0})])
def test_options_of_another_decoder_or_out_of_range_are_refused(tmp_path, rank, options):
    folder = tiny.folder(tmp_path, rank=rank)
    (folder / "settings.json").write_text(json.dumps({"decoding": options}))
    with pytest.raises(ModelCorrupt, match=r"settings\.json"):
        tiny.load(folder)


SLOTS = st.lists(st.tuples(st.floats(0, 6), st.booleans()), min_size=1, max_size=16)


@given(SLOTS, st.floats(0, 3))
def test_chosen_slots_are_masked_at_least_one_and_within_the_bound(slots, bound):
    entropy, masked = (np.array(column) for column in zip(*slots, strict=True))
    found = chosen(-entropy.astype(np.float32), masked, entropy_bound(bound).limits(0, len(slots)))
    assert not (found & ~masked).any()
    assert found.any() == masked.any()
    risked = entropy.astype(np.float32)[found]
    if len(risked) > 1:
        assert float(risked.sum() - risked.max()) <= bound + 1e-4
