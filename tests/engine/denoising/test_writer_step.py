"""The writer deciding alone: what it commits, and within which limits."""

import itertools
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.api import FillRequest
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.rule import DenoisingRule
from mercury_engine.denoising.slot_masks import SlotLimits
from mercury_engine.engine import Engine
from mercury_engine.errors import ModelCorrupt
from mercury_kernels import reference
from mercury_kernels.operands import Choice, Slots

from tests.support import tiny

WRITER = {"rule": {"decides": "writer", "bound": 6.0}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tiny.folder(tmp_path_factory.mktemp("writing"))
    (folder / "settings.json").write_text(json.dumps(WRITER))
    return tiny.load(folder)


def canvas_of(engine, slots, **more) -> Canvas:
    return Canvas(engine.denoiser.vocabulary, [engine.denoiser.vocabulary.mask_id] * slots, 0, **more)


def opinion(engine, tokens, sureness=9.0):
    """Log-probabilities [S,V] that prefer these tokens, most strongly the first."""
    size = len(engine.denoiser.vocabulary.texts) + 2
    logits_SV = torch.zeros(len(tokens), size)
    for slot, token in enumerate(tokens):
        logits_SV[slot, token] = sureness + (len(tokens) - slot) / 10
    return logits_SV.log_softmax(-1).numpy()


def decide(engine, canvas, written_SV, bound=0.0, threshold=None, is_last_step=False, multiline=True):
    engine.denoiser.writer_step.decide(canvas, written_SV, multiline, bound, threshold, is_last_step)


def tokens_of(engine, *texts):
    return [engine.denoiser.vocabulary.texts.index(text) for text in texts]


def test_drafts_that_the_writer_would_choose_stay_and_the_others_are_masked(engine):
    mask = engine.denoiser.vocabulary.mask_id
    right, wrong, other = tokens_of(engine, "a", "b", "c")
    canvas = canvas_of(engine, 4, draft=[right, wrong, right])
    canvas.ids[:3] = canvas.draft
    decide(engine, canvas, opinion(engine, [right, other, right, other]), bound=100.0)
    assert canvas.ids == [right, mask, right, mask]  # the open slot waits: the writer saw a wrong draft beside it
    assert sorted(canvas.committed) == [0, 2]
    engine.denoiser.advance(canvas)
    assert (canvas.settled, sorted(canvas.committed)) == (1, [2])


def test_the_last_step_replaces_a_wrong_draft_and_fills_every_open_slot(engine):
    right, wrong = tokens_of(engine, "a", "b")
    canvas = canvas_of(engine, 3, draft=[wrong])
    canvas.ids[:1] = canvas.draft
    decide(engine, canvas, opinion(engine, [right] * 3), is_last_step=True)
    assert canvas.ids == [right] * 3


def test_every_slot_behind_an_end_marker_is_an_end_marker(engine):
    end = engine.denoiser.vocabulary.end_id
    (a,) = tokens_of(engine, "a")
    canvas = canvas_of(engine, 4)
    decide(engine, canvas, opinion(engine, [a, end, a, a]), bound=100.0)
    assert canvas.ids == [a, end, end, end]
    engine.denoiser.advance(canvas)
    assert (canvas.ended, canvas.ids) == (True, [a])


def test_another_candidate_first_commits_only_its_own_first_token(engine):
    first, second = tokens_of(engine, "a", "b")
    written_SV = opinion(engine, [first] * 3)
    written_SV[0, second] = written_SV[0, first] - 0.1
    canvas = canvas_of(engine, 3, choice=1)
    decide(engine, canvas, written_SV, bound=100.0)
    assert canvas.ids[0] == second
    assert list(canvas.committed) == [0]
    assert canvas.choice == 0


def test_the_threshold_replaces_the_bound(engine):
    mask = engine.denoiser.vocabulary.mask_id
    (a,) = tokens_of(engine, "a")
    written_SV = opinion(engine, [a] * 3)
    written_SV[1] = opinion(engine, [a], sureness=0.0)[0]
    canvas = canvas_of(engine, 3)
    decide(engine, canvas, written_SV, bound=100.0, threshold=0.5)
    assert canvas.ids == [a, mask, a]


def test_behind_a_partly_spelled_word_slots_are_written_again(engine):
    mask = engine.denoiser.vocabulary.mask_id
    part, rest, other = tokens_of(engine, "r", "q", "c")
    canvas = canvas_of(engine, 4, begun="rq", draft=[part, rest, other])
    canvas.ids[:3] = canvas.draft
    canvas.ids[3] = other
    canvas.committed = {0: 0.5, 3: 0.5}
    engine.denoiser.advance(canvas)
    assert (canvas.settled, canvas.spell, canvas.committed) == (1, "q", {})
    assert canvas.ids == [part, rest, other, mask]  # the draft keeps its remainder
    canvas = canvas_of(engine, 3, begun="rq")
    canvas.ids = [part, other, other]
    canvas.committed = dict.fromkeys(range(3), 0.5)
    engine.denoiser.advance(canvas)
    assert canvas.ids == [part, mask, mask]


def test_limits_hide_tokens_that_misspell_break_the_line_or_were_wrong(engine):
    masks, vocabulary = engine.denoiser.masks, engine.denoiser.vocabulary
    allowed = {
        vocabulary.texts[i]
        for i, hidden in enumerate(masks.hidden_tokens(SlotLimits("re", False, None))[:-2])
        if not hidden
    }
    assert allowed and all("re".startswith(text) or text.startswith("re") for text in allowed)
    (line,) = tokens_of(engine, "\n")
    (a,) = tokens_of(engine, "a")
    for multiline in (False, True):
        row = masks.hidden_tokens(SlotLimits("", multiline, a))
        assert (bool(row[line]), bool(row[a])) == (not multiline, True)
        assert bool(row[vocabulary.mask_id]) and not row[vocabulary.end_id]
    assert masks.hidden_tokens(SlotLimits("re", True))[vocabulary.end_id]


SLOT = st.tuples(
    st.sampled_from(["mask", "draft", "committed"]), st.integers(0, 3), st.integers(0, 3), st.sampled_from(range(73))
)
"""Kind, draft, best token, and eighths of its logit. Of equally sure slots, rounding decides which comes first."""


@given(st.lists(SLOT, min_size=1, max_size=10, unique_by=lambda slot: slot[3]), st.floats(0, 3), st.booleans())
def test_one_step_decides_like_the_step_on_the_device(engine, slots, bound, is_last_step):
    vocabulary = engine.denoiser.vocabulary
    known = [*tokens_of(engine, "a", "b", "c"), vocabulary.end_id]
    canvas = canvas_of(engine, len(slots))
    for slot, (kind, now, _, _) in enumerate(slots):
        if kind != "mask":
            canvas.ids[slot] = known[min(now, 2)]
        if kind == "committed":
            canvas.committed[slot] = 0.5
    logits_SV = torch.zeros(len(slots), len(vocabulary.texts) + 2)
    for slot, (_, _, best, sureness) in enumerate(slots):
        logits_SV[slot, known[best]] = 1 + sureness / 8
    before = list(canvas.ids)
    chances = [
        1.0,
        *(canvas.committed.get(s, 0.0 if canvas.ids[s] != vocabulary.mask_id else 1.0) for s in range(len(slots))),
    ]
    decide(engine, canvas, logits_SV.log_softmax(-1).numpy(), bound, is_last_step=is_last_step)

    row = torch.from_numpy(engine.denoiser.masks.hidden_tokens(SlotLimits("", True)))[None]
    hidden = torch.cat((logits_SV, logits_SV[:1]))  # the last row predicts no slot
    choice = choices_of(hidden.masked_fill(row, float("-inf")))
    one = torch.ones(1, dtype=torch.int32)
    made = Slots(
        torch.tensor([[1, *before]], dtype=torch.int32), one * (len(slots) + 1), torch.tensor([bound]),
        one * (1 if is_last_step else 99), torch.tensor([chances]), one * 0, one * 0,
    )  # fmt: skip
    reference.commit(made, choice, vocabulary.mask_id, vocabulary.end_id)
    assert made.ids[0, 1:].tolist() == canvas.ids


def choices_of(logits_SV) -> Choice:
    logp_SV = logits_SV.log_softmax(-1)
    entropy_S = -(logp_SV.exp() * logp_SV.clamp_min(-1e4)).sum(-1)
    return Choice(logits_SV.argmax(-1).int(), logits_SV.amax(-1), logits_SV.logsumexp(-1), entropy_S)


def test_committed_slots_are_shown_as_committed_before_they_are_settled(engine):
    seen = tiny.watched(engine, FillRequest(near="x = 1", suffix=("\n",), max_slots=12, multiline=True))[1]
    assert any(
        view[at].state == "mask" and view[at + 1].state == "committed" for view in seen for at in range(len(view) - 1)
    )
    for before, after in itertools.pairwise(seen):
        for old, new in zip(before, after, strict=False):
            assert old.state != "committed" or old.text == new.text


def test_candidates_of_the_writer_differ_and_come_surest_first(engine):
    fill = engine.fill(FillRequest(near="x = 1", suffix=("\n",), max_slots=8, candidates=4, multiline=True))
    found = [fill, *fill.others]
    assert len({each.text for each in found}) == len(found) > 1
    assert [each.confidence for each in found] == sorted((each.confidence for each in found), reverse=True)


def test_the_reader_reads_no_slots_where_the_writer_decides(engine, monkeypatch):
    request = FillRequest(near="x = 1", suffix=("\n",), max_slots=8)
    engine.fill(request)
    monkeypatch.setattr(engine.reader, "read_together", lambda *_: pytest.fail("the reader was asked"))
    assert engine.fill(request).steps > 0


@tiny.needs_kernels
def test_the_writer_also_decides_with_quantised_weights(tmp_path):
    folder = tiny.folder(tmp_path, **tiny.WIDE)
    (folder / "settings.json").write_text(json.dumps(WRITER))
    native = Engine.load(folder, device="cpu")
    assert native.backend == "native"
    request = FillRequest(near="x = 1", suffix=("\n",), max_slots=8, multiline=True)
    fill, views = tiny.watched(native, request)
    assert fill.steps == len(views) > 0
    assert all(slot.state in ("committed", "end") for slot in views[-1])


def test_a_model_without_a_writer_cannot_let_the_writer_decide(tmp_path):
    folder = tiny.folder(tmp_path, rank=0)
    (folder / "settings.json").write_text(json.dumps(WRITER))
    with pytest.raises(ModelCorrupt, match="writer"):
        tiny.load(folder)


@pytest.mark.parametrize("rule", [{"decides": "nobody"}, {"drafts": "magic"}])
def test_unknown_words_in_a_rule_are_refused(tmp_path, rule):
    with pytest.raises(ValueError, match="known are"):
        DenoisingRule(**rule)
    folder = tiny.folder(tmp_path)
    (folder / "settings.json").write_text(json.dumps({"rule": rule}))
    with pytest.raises(ModelCorrupt, match=r"settings\.json"):
        tiny.load(folder)
