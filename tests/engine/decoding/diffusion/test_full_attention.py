"""Masked diffusion models with full attention: tiny checkpoints in their published layouts against transformers."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from mercury_engine.api import Control, FillRequest, GenerateRequest
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import OPEN_SLOTS, TwoSided
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.errors import PromptTooLong, RequestError
from mercury_engine.kv_cache.masked import MOST_NEW, MOST_USES, TwoSides
from mercury_engine.models import batching, weights
from mercury_engine.models.batching import DeadlineReached
from mercury_engine.models.network import ForwardRequest
from mercury_engine.models.row_answers import RowQuestion
from mercury_lab.engine import Engine, finished

from tests.support import masked, tiny
from tests.support.asking import answered, everything, logp

REQUEST = FillRequest("def add(a, b):\n    return ", suffix=("\n\n\nprint(add(1, 2))\n",), max_slots=16)


@pytest.fixture(scope="module", params=masked.FULL_ATTENTION)
def checkpoint(request, tmp_path_factory):
    return masked.folder(tmp_path_factory.mktemp("masked") / request.param, request.param)


@pytest.fixture(scope="module")
def engine(checkpoint) -> Engine:
    return Engine.load(checkpoint[0], device="cpu", dtype=torch.float32)


def divergence(expected: np.ndarray, found: np.ndarray) -> float:
    """Mean Kullback-Leibler divergence of rows of log-probabilities, in nats."""
    return float((np.exp(expected) * (expected - found)).sum(-1).mean())


def layout_of(engine: Engine) -> TwoSided:
    decoder = engine.decoder
    assert isinstance(decoder, DiffusionDecoder) and isinstance(decoder.layout, TwoSided)
    return decoder.layout


def sides_of(engine: Engine, request: FillRequest) -> TwoSides:
    return layout_of(engine).sides(request, engine.tokenizer.cut(request.near).read)


@pytest.mark.parametrize("length", [3, 40, 300])
def test_logits_are_those_of_transformers_where_all_tokens_see_each_other(engine, checkpoint, length):
    ids = np.random.default_rng(length).integers(1, 400, length)
    forward = ForwardRequest(ids, wanted=range(length), block=None)
    [found] = batching.run(engine.reader, [forward])
    expected = masked.reference(checkpoint[1], ids.tolist()).log_softmax(-1)
    assert torch.as_tensor(found.logp_WV) == pytest.approx(expected, abs=1e-4)


@tiny.needs_kernels
def test_the_c_kernels_see_both_sides_too(tmp_path):
    folder, model = masked.folder(tmp_path / "wide", "Open-dCoder", hidden_size=256, intermediate_size=256)
    engine = Engine.load(folder, device="cpu", backend="native")
    ids = np.random.default_rng(1).integers(1, 400, 60)
    [found] = batching.run(engine.reader, [ForwardRequest(ids, wanted=range(60), block=None)])
    expected = masked.reference(model, ids.tolist()).log_softmax(-1).numpy()
    causal = batching.run(engine.reader, [ForwardRequest(ids, wanted=range(60))])[0].logp_WV
    assert divergence(expected, found.logp_WV) < 0.1  # what weights in eight bits cost
    assert divergence(expected, causal) > 1


def test_slots_get_the_logits_of_the_row_that_predicts_them(engine, checkpoint):
    layout, sides = layout_of(engine), TwoSides((5, 6, 7, 8), (9, 10, 11))
    mask = engine.reader.config.mask_id
    asked = everything(2, engine.reader.config.vocab_size)
    found = logp(finished(layout.cache.read(sides, [mask, mask], asked), engine.reader))
    whole = masked.reference(checkpoint[1], sides.around([mask, mask])).log_softmax(-1)
    first = 3 if engine.reader.config.masked_attention.shifted else 4
    assert found == pytest.approx(whole[first : first + 2].numpy(), abs=1e-4)


def test_a_step_over_cached_sides_computes_what_is_new_beside_the_gap(engine):
    """As soon as the slots are as they were in the cached pass, it computes what that pass did."""
    layout = layout_of(engine)
    mask, sides = engine.reader.config.mask_id, TwoSides(tuple(range(5, 45)), tuple(range(50, 70)))
    layout.cache.clear()
    asked = everything(4, engine.reader.config.vocab_size)
    exact = logp(finished(layout.cache.read(sides, [mask] * 4, asked), engine.reader))
    again = logp(finished(layout.cache.reread(sides, [mask] * 4, asked), engine.reader))
    assert again == pytest.approx(exact, abs=1e-3)


def test_typing_reads_the_new_tokens_and_a_jump_the_whole_text(engine, monkeypatch):
    layout, rows = layout_of(engine), list[int]()
    run = engine.reader.read_together
    monkeypatch.setattr(
        engine.reader, "read_together", lambda forwards: rows.extend(each.rows for each in forwards) or run(forwards)
    )
    mask, before, after = engine.reader.config.mask_id, tuple(range(5, 45)), tuple(range(50, 70))
    layout.cache.clear()
    for sides in (TwoSides(before, after), TwoSides((*before, 99), after), TwoSides(before[: -MOST_NEW - 9], after)):
        asked = everything(4, engine.reader.config.vocab_size)
        finished(layout.cache.reread(sides, [mask] * 4, asked), engine.reader)
    typed_again = 1 + 1 + 4  # the key, the token before it that predicts the first slot, the slots
    assert rows[0] == 64
    assert rows[1] in (5, typed_again)


def test_exact_steps_give_the_same_request_the_same_answer(engine):
    exact = engine.varied(DiffusionOptions(exact=True))
    first, second = exact.fill(REQUEST), exact.fill(REQUEST)
    assert first.text == second.text
    assert first.steps > 0


def test_a_watcher_sees_masks_become_tokens(engine):
    seen = []
    engine.fill(REQUEST, Control(on_step=seen.append))
    assert {slot.state for slot in seen[0]} == {"mask"}
    assert all(slot.state == "committed" for slot in seen[-1])


def test_a_watcher_sees_path_planning_mask_tokens_again(tmp_path):
    folder, _ = masked.folder(tmp_path, "Open-dCoder")
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    seen = []
    varied = engine.varied(DiffusionOptions(schedule="path planning", searches_length=False))
    varied.fill(replace(REQUEST, multiline=True), Control(on_step=seen.append))
    states = [[slot.state for slot in slots] for slots in seen]
    again = [pair for row, after in pairwise(states) for pair in zip(row, after, strict=True)]
    assert ("committed", "mask") in again and ("mask", "committed") in again


def test_steps_are_bounded_and_the_last_reveals_all(engine):
    seen = []
    engine.fill(FillRequest(REQUEST.near, suffix=REQUEST.suffix, max_steps=2), Control(on_step=seen.append))
    assert all(slot.state == "committed" for slot in seen[-1])
    assert len(seen) == 3


@pytest.mark.parametrize(("wrong", "kept"), [((2, None), True), ((2, 3), False)])
def test_a_text_that_breaks_the_syntax_is_masked_again_once_and_then_cut(engine, wrong, kept):
    texts, positions, seen = list[str](), [*wrong], []
    control = Control(on_step=seen.append, check=lambda text: texts.append(text) or positions.pop(0))
    found = engine.fill(replace(REQUEST, multiline=True), control)
    assert len(texts) == 2 and texts[1] != texts[0], "the token that proved wrong is not written again"
    assert any(before[-1].state == "committed" and after[-1].state == "mask" for before, after in pairwise(seen))
    assert texts[1].startswith(found.text)
    assert kept or (len(found.text) <= 3 and len(seen[-1]) < len(seen[-2]))


def test_a_text_that_breaks_the_syntax_is_cut_where_no_steps_are_left(engine):
    texts, seen = list[str](), []
    control = Control(on_step=seen.append, check=lambda text: texts.append(text) or 2)
    found = engine.fill(replace(REQUEST, multiline=True, max_steps=2), control)
    assert (found.steps, len(texts)) == (2, 1)
    assert len(found.text) <= 2 and texts[0].startswith(found.text)


def test_after_128_passes_over_it_a_text_is_read_again(engine):
    layout, sides = layout_of(engine), TwoSides(tuple(range(5, 45)), tuple(range(50, 70)))
    layout.cache.clear()
    mask, read = engine.reader.config.mask_id, list[int]()
    for _ in range(2 * MOST_USES + 2):
        read.append(layout.cache.new(sides))
        asked = everything(1, engine.reader.config.vocab_size)
        finished(layout.cache.reread(sides, [mask], asked), engine.reader)
    assert [number for number, tokens in enumerate(read) if tokens == sides.tokens] == [0, MOST_USES + 1]


@pytest.mark.parametrize("schedule", ["path planning", "linear"])
def test_rules_with_a_schedule_finish(checkpoint, engine, schedule):
    if engine.reader.config.masked_attention.expand_id is not None:
        pytest.skip("DreamOn has a sampler of its own")
    varied = engine.varied(DiffusionOptions(schedule=schedule))
    assert varied.fill(REQUEST).steps <= 16


def test_a_model_that_finds_lengths_keeps_one_that_is_given(tmp_path):
    folder, _ = masked.folder(tmp_path, "DreamOn")
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    fixed = engine.varied(replace(engine.parts.options, searches_length=False))
    seen = []
    fixed.fill(replace(REQUEST, max_slots=5), Control(on_step=seen.append))
    assert {len(slots) for slots in seen} == {5}


def test_exact_steps_read_the_whole_text_each_time(engine, monkeypatch):
    varied, rows = engine.varied(DiffusionOptions(exact=True)), list[int]()
    run = varied.reader.read_together
    monkeypatch.setattr(
        varied.reader, "read_together", lambda forwards: rows.extend(each.rows for each in forwards) or run(forwards)
    )
    varied.fill(REQUEST)
    sides = sides_of(varied, REQUEST)
    assert min(rows) > len(sides.before) + len(sides.after)


def test_a_plain_qwen2_is_a_causal_model(tmp_path):
    folder, _ = masked.folder(tmp_path / "plain", "Open-dCoder")
    (folder / "tokenizer_config.json").unlink()
    assert weights.read_config(folder).kind == "causal"


LONG = FillRequest(
    "def add(a, b):\n    return ",
    far=tuple(f"def number_{number}():\n    return {number}\n\n" * 8 for number in range(8)),
    suffix=("\n\n\nprint(add(1, 2))\n" * 30,),
    max_slots=8,
    unread_limit=32,
)


def rows_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The rows of each text of each pass from now on."""
    rows, run = list[list[int]](), batching.run

    def counted(network, asked):
        rows.extend([each.rows for each in getattr(forward, "forwards", [forward])] for forward in asked)
        return run(network, asked)

    monkeypatch.setattr(batching, "run", counted)
    return rows


def test_two_editors_keep_their_texts(engine, monkeypatch):
    layout_of(engine).cache.clear()
    other = FillRequest("class Point:\n    x = ", suffix=("\n    y = 2\n",), max_slots=4)
    engine.fill(REQUEST), engine.fill(other)
    rows = rows_read(engine, monkeypatch)
    assert max(engine.fill(each).tokens_read for each in (REQUEST, other)) <= 1, "the row before the gap"
    assert max(map(max, rows)) <= 16 + 1


def test_lengths_are_searched_in_few_passes_and_the_first_step_has_none(tmp_path, monkeypatch):
    engine = Engine.load(masked.folder(tmp_path, "A2D-qwen2")[0], device="cpu", dtype=torch.float32)
    expected, rows = engine.fill(REQUEST), rows_read(engine, monkeypatch)
    found = engine.fill(REQUEST)
    searched = [each for each in rows if len(each) > 1]
    assert rows[0] == [1 + slots for slots in (8, 6, 7, 9, 10)]
    assert len(rows) == len(searched) + found.steps - 1
    assert found.text == expected.text


def test_a_jump_reads_what_is_nearest_and_a_pause_the_rest(engine, monkeypatch):
    layout_of(engine).cache.clear()
    near = engine.fill(LONG)
    whole = sides_of(engine, LONG)
    assert 0 < near.tokens_read < whole.tokens
    assert near.tokens_unread > 0
    paused = replace(LONG, max_steps=0, unread_limit=None)
    rows = rows_read(engine, monkeypatch)
    engine.fill(paused), engine.fill(paused)
    assert rows == [[whole.tokens + 8]], "the second pause finds everything read"
    again = engine.fill(LONG)
    assert (again.tokens_read, again.tokens_unread) == (1, 0), "the row before the gap"


def test_a_key_typed_in_a_word_reads_nothing(engine):
    layout_of(engine).cache.clear()
    engine.fill(replace(REQUEST, near=REQUEST.near + "val"))
    fill = engine.fill(replace(REQUEST, near=REQUEST.near + "valu"))
    assert (fill.tokens_read, fill.tokens_unread) == (1, 0), "the row before the gap"


def test_words_typed_since_leave_something_to_read_in_a_pause(engine):
    layout_of(engine).cache.clear()
    engine.fill(REQUEST)
    typed = replace(REQUEST, near=REQUEST.near + "a + b")
    assert engine.fill(typed).tokens_unread > 0
    engine.fill(replace(typed, max_steps=0))
    assert engine.fill(typed).tokens_unread == 0


def continued(model, ids: list[int], mask: int, shift: int, count: int) -> list[int]:
    """What a decoder without a cache writes at a threshold that no slot reaches: the surest token of a block each."""
    ids, last = [*ids], len(ids) + count
    while len(ids) < last:
        slots = [mask] * min(OPEN_SLOTS, last - len(ids))
        while mask in slots:
            rest = [mask] * (last - len(ids) - len(slots))
            logits_SV = masked.reference(model, [*ids, *slots, *rest])[len(ids) - shift :][: len(slots)]
            logits_SV[:, mask] = float("-inf")
            sure_S, token_S = logits_SV.softmax(-1).max(-1)
            at = max((at for at, each in enumerate(slots) if each == mask), key=lambda at: sure_S[at])
            slots[at] = int(token_S[at])
        ids += slots
    return ids


@pytest.mark.parametrize("family", ["A2D-qwen3", "Dream"])
def test_a_text_is_continued_as_without_a_cache(family, tmp_path, monkeypatch):
    folder, model = masked.folder(tmp_path, family)
    engine = Engine.load(folder, device="cpu", dtype=torch.float32).varied(DiffusionOptions(threshold=1.0, exact=True))
    decoder = engine.decoder
    monkeypatch.setattr(decoder.rules, "ends_text", np.array([], np.int64))
    prompt = np.random.default_rng(6).integers(1, 400, 6).tolist()
    found = finished(decoder.generate(GenerateRequest(max_tokens=40), prompt, Control()), engine.reader)
    attention = engine.reader.config.masked_attention
    expected = continued(model, prompt, attention.mask_id, int(attention.shifted), 40)
    assert found.text == engine.tokenizer.decode(expected[6:])
    assert (found.prompt_tokens, found.tokens, found.steps, found.finish_reason) == (6, 40, 40, "length")


def test_a_generated_text_reads_again_at_most_once_a_block(engine, monkeypatch):
    layout_of(engine).cache.clear()
    rows, run = list[int](), engine.reader.read_together
    monkeypatch.setattr(
        engine.reader, "read_together", lambda forwards: rows.extend(each.rows for each in forwards) or run(forwards)
    )
    monkeypatch.setattr(engine.decoder.rules, "ends_text", np.array([], np.int64))
    prompt = engine.tokenizer.encode(tiny.SAMPLE)[:300]
    finished(engine.decoder.generate(GenerateRequest(max_tokens=64), prompt, Control()), engine.reader)
    assert sum(each > 300 for each in rows) <= 2 * 64 // MOST_NEW
    assert max(each for each in rows if each <= 300) <= OPEN_SLOTS + MOST_NEW + 1


def test_a_prompt_as_long_as_the_model_reads_is_refused(engine):
    with pytest.raises(PromptTooLong, match="shorten it"):
        engine.generate(GenerateRequest(tiny.SAMPLE * 8))
    with pytest.raises(RequestError, match="choose a causal model"):
        engine.generate(GenerateRequest("x", schema="{}"))


def questions_of(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, request: FillRequest, *liked: int
) -> list[RowQuestion]:
    """The questions of a fill by a model that likes these tokens, the first best;"""
    asked = list[RowQuestion]()

    def answers(hidden_WC, questions, is_canvas):
        asked.extend(questions)
        logits = np.zeros(engine.reader.config.vocab_size, np.float32)
        logits[[*liked]] = range(9, 9 - len(liked), -1)
        return [answered(np.tile(logits, (question.rows, 1)), question) for question in questions]

    monkeypatch.setattr(engine.reader, "answers", answers)
    engine.fill(request)
    return asked


def test_the_last_step_and_a_full_row_of_slots_choose_no_expand_or_delete(tmp_path, monkeypatch):
    engine = Engine.load(masked.folder(tmp_path, "DreamOn")[0], device="cpu", dtype=torch.float32)
    tokens = layout_of(engine).tokens
    request = replace(REQUEST, near="def add(a, b):\n    return 1", max_slots=10, max_steps=6)
    asked = questions_of(engine, monkeypatch, request, tokens.expand, 300, tokens.delete)
    banned = [
        [
            bool(question.banned_N[0, token // 32] >> np.uint32(token % 32) & 1)
            for token in (tokens.expand, tokens.delete)
        ]
        for question in asked
    ]
    # eight slots, which two expands make ten: from there on none expands; the last step only writes
    assert banned == [[False, False]] * 2 + [[True, False]] * (len(asked) - 3) + [[True, True]]


def test_a_line_break_ends_a_fill_of_one_line_before_its_last_slot(tmp_path, monkeypatch):
    engine = Engine.load(masked.folder(tmp_path, "A2D-qwen2")[0], device="cpu", dtype=torch.float32)
    a, line = (engine.tokenizer.encode(text)[0] for text in ("a", "\n"))

    def answers(hidden_WC, questions, is_canvas):
        """An a in the first of eight slots, and line breaks after it."""
        found = []
        for question in questions:
            logits_WV = np.zeros((question.rows, engine.reader.config.vocab_size), np.float32)
            logits_WV[:, line], logits_WV[0, a] = 8, 9 if question.rows == 8 else 0
            found.append(answered(logits_WV, question))
        return found

    monkeypatch.setattr(engine.reader, "answers", answers)
    fixed = engine.varied(DiffusionOptions(searches_length=False))
    fill = fixed.fill(replace(REQUEST, near="x = 1", max_slots=8))
    assert (fill.text, fill.is_finished, fill.steps) == ("a", True, 2)


def test_what_stands_revealed_at_the_left_when_time_is_up_is_the_answer(tmp_path):
    """Also of a rule that might have masked it again."""
    engine = Engine.load(masked.folder(tmp_path, "Open-dCoder")[0], device="cpu", dtype=torch.float32)
    decoder = engine.varied(DiffusionOptions(schedule="path planning", searches_length=False)).decoder
    seen = list[list[str]]()
    control = Control(on_step=lambda views: seen.append([view.state for view in views]))
    steps = decoder.write(replace(REQUEST, multiline=True), control)
    forward = next(steps)
    while len(seen) < 9 or seen[-1][0] == "mask":
        forward = steps.send(batching.run(engine.reader, [forward])[0])
    with pytest.raises(StopIteration) as end:
        steps.throw(DeadlineReached())
    [written], _ = end.value.value
    assert len(written.ids) == seen[-1].index("mask") > 0


def test_a_word_spelled_in_pieces_adds_a_step_for_each_to_a_schedule(tmp_path, monkeypatch):
    engine = Engine.load(masked.folder(tmp_path, "A2D-qwen2")[0], device="cpu", dtype=torch.float32)
    letters = [engine.tokenizer.encode(letter)[0] for letter in "view"]
    fixed = engine.varied(DiffusionOptions(schedule="linear", searches_length=False))
    request = replace(REQUEST, near="self.\nview", effort="low", max_slots=6)
    assert fixed.tokenizer.cut(request.near).spell == "view"
    questions_of(fixed, monkeypatch, request, *letters)  # it spells what begins the word letter by letter
    assert fixed.fill(request).steps <= 6 + 4
