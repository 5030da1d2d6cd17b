"""Masked diffusion models that decode in blocks: parity with transformers, their exact cache, and their steps."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.api import Control, FillRequest, GenerateRequest, Sampling
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import Around, Blocks
from mercury_engine.decoding.diffusion.rules import entropy_bound
from mercury_engine.decoding.diffusion.texts import Text
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.errors import ModelCorrupt, RequestError
from mercury_engine.kv_cache.masked import TwoSides
from mercury_engine.models import batching, weights
from mercury_engine.models.network import ForwardRequest
from mercury_lab.engine import Engine, finished

from tests.support import masked, tiny
from tests.support.asking import answered, everything, logp

REQUEST = FillRequest("def add(a, b):\n    return ", suffix=("\n\n\nprint(add(1, 2))\n",), max_slots=12)


@pytest.fixture(scope="module", params=masked.BLOCKS)
def checkpoint(request, tmp_path_factory):
    return *masked.folder(tmp_path_factory.mktemp("blocks") / request.param, request.param), masked.BLOCKS[
        request.param
    ]


@pytest.fixture(scope="module")
def engine(checkpoint) -> Engine:
    return Engine.load(checkpoint[0], device="cpu", dtype=torch.float32)


def layout_of(engine: Engine) -> Blocks:
    """The engine's layout, which has read nothing."""
    decoder = engine.decoder
    assert isinstance(decoder, DiffusionDecoder) and isinstance(decoder.layout, Blocks)
    decoder.layout.cache.clear()
    return decoder.layout


def ids_of(length: int) -> list[int]:
    return np.random.default_rng(length).integers(1, 400, length).tolist()


class Open(Text):
    """A text in which everything may stand."""

    def hidden(self, slots: int) -> list[np.ndarray]:
        return [np.zeros(len(self.written.rules.texts), np.bool_)] * slots


def told_of(engine: Engine, layout: Blocks, ids: list[int], masks: int) -> np.ndarray:
    """Log-probabilities of masks after a text."""
    text = Open(Hypothesis(engine.decoder.rules, FillRequest(""), [], masks), layout.tokens, None)
    text.open(masks)
    read = layout.cache.read

    def asking(ids, first, wanted, question):
        return read(ids, first, wanted, everything(len(wanted), engine.reader.config.vocab_size))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout.cache, "read", asking)
        around = Around(seen=TwoSides(tuple(ids), ()))
        return logp(finished(layout.told(around, [text], entropy_bound()), engine.reader)[0])


def rows_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each pass from now on."""
    rows, run = list[int](), engine.reader.read_together
    monkeypatch.setattr(
        engine.reader, "read_together", lambda forwards: rows.extend(each.rows for each in forwards) or run(forwards)
    )
    return rows


@pytest.mark.parametrize("length", [3, 40, 300])
def test_logits_are_those_of_transformers_under_the_block_mask(engine, checkpoint, length):
    _, model, block = checkpoint
    forward = ForwardRequest(np.array(ids_of(length)), wanted=range(length), block=block)
    [found] = batching.run(engine.reader, [forward])
    expected = masked.reference(model, ids_of(length), block).log_softmax(-1)
    assert torch.as_tensor(found.logp_WV) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("length", [5, 41, 301])
def test_slots_over_cached_blocks_get_the_logits_of_one_pass_over_everything(engine, checkpoint, length):
    _, model, block = checkpoint
    layout, ids, mask = layout_of(engine), ids_of(length), engine.reader.config.mask_id
    for text in (ids[: length // 2], ids):  # the second finds the first one's whole blocks
        place = len(text) % block
        found = told_of(engine, layout, text, block - place)
        whole = masked.reference(model, [*text, *[mask] * (block - place)], block).log_softmax(-1)
        shift = layout.attention.shifted
        first = len(text) - shift if place or not shift else len(text) - 1
        assert found == pytest.approx(whole[first : first + len(found)].numpy(), abs=1e-4)


def test_a_blocks_first_token_comes_from_the_row_before_it_where_rows_predict_the_next(engine, checkpoint):
    _, model, block = checkpoint
    layout, ids = layout_of(engine), ids_of(2 * block)
    found = told_of(engine, layout, ids, block)
    if layout.attention.shifted:
        expected = masked.reference(model, ids, block).log_softmax(-1)[-1:]
        assert found == pytest.approx(expected.numpy(), abs=1e-4)
    else:
        assert len(found) == block


@tiny.needs_kernels
def test_the_c_kernels_see_blocks_too(tmp_path):
    sizes = {"hidden_size": 256, "intermediate_size": 256}
    folder, model = masked.folder(tmp_path / "wide", "Stable-DiffCoder", **sizes)
    engine = Engine.load(folder, device="cpu", backend="native")
    [found] = batching.run(engine.reader, [ForwardRequest(np.array(ids_of(60)), wanted=range(60), block=4)])
    expected = masked.reference(model, ids_of(60), 4).log_softmax(-1).numpy()
    assert float((np.exp(expected) * (expected - found.logp_WV)).sum(-1).mean()) < 0.1  # what eight bits cost
    layout = layout_of(engine)
    finished(layout.continued(ids_of(61)), engine.reader)
    cached = told_of(engine, layout, ids_of(61), 3)
    assert cached == pytest.approx(told_of(engine, layout_of(engine), ids_of(61), 3), abs=1e-3)


def test_a_step_and_a_typed_key_compute_their_block_only(engine, checkpoint, monkeypatch):
    layout, block = layout_of(engine), checkpoint[2]
    ids, rows = ids_of(4 * block + 1), rows_read(engine, monkeypatch)
    for text in (ids, ids, [*ids, 7], ids[: 3 * block + 1]):
        told_of(engine, layout, text, block - len(text) % block)
    assert rows == [5 * block, block, block, block]


def test_the_text_after_the_gap_is_not_seen(engine):
    layout_of(engine)
    other = replace(REQUEST, suffix=("\n\n\nclass Other:\n    pass\n",))
    first = engine.fill(REQUEST)
    layout_of(engine)
    assert engine.fill(other).text == first.text


def test_a_pause_reads_what_a_fill_then_finds(engine, monkeypatch):
    layout_of(engine)
    engine.fill(replace(REQUEST, max_steps=0))
    fill = engine.fill(REQUEST)
    assert (fill.tokens_read, fill.tokens_unread) == (0, 0)
    assert fill.steps > 0


@pytest.mark.parametrize("size", ["8", 0, 4096])
def test_a_block_that_no_model_has_is_refused(size, tmp_path):
    folder, _ = masked.folder(tmp_path, "SDAR")
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"block_size": size}))
    with pytest.raises(ModelCorrupt, match="block_size"):
        weights.read_config(folder)


class Table:
    """Knows the right text, and how sure it is of the token at each place; notes what it is asked for."""

    def __init__(self, engine: Engine, text: str, sure: dict[int, float], default: float = 0.99) -> None:
        self.ids, self.sure, self.default = engine.tokenizer.encode(text), sure, default
        self.size, self.shift = engine.reader.config.vocab_size, int(layout_of(engine).attention.shifted)
        self.mask, self.asked = engine.reader.config.mask_id, list[tuple[int, list[int], int]]()

    def unread(self, ids: Sequence[int]) -> int:
        return 0

    def read(self, ids, first, wanted, question):
        yield None
        self.asked.append((first, list(wanted), sum(each == self.mask for each in ids)))
        logp_WV = np.full((len(wanted), self.size), -50.0, np.float32)
        for row, at in zip(logp_WV, wanted, strict=True):
            place = at + self.shift
            row[self.ids[place] if place < len(self.ids) else self.ids[-1]] = np.log(self.sure.get(place, self.default))
            row[3] = np.log1p(-self.sure.get(place, self.default))
        return answered(logp_WV, question)


def written(engine: Engine, table: Table, near: str, slots: int) -> tuple[str, list[list[str]]]:
    """The text that the table makes the decoder write, and the states of its slots after each step."""
    seen = list[list[str]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout_of(engine), "cache", table)
        request = FillRequest(near, max_slots=slots, multiline=True)
        fill = engine.fill(request, Control(on_step=lambda views: seen.append([each.state for each in views])))
    return fill.text, seen


TEXT = "x" + "".join(f"{number % 10}{'+-*/'[number % 4]}" for number in range(40)) + "0\n"
"""A token a character. After an even number of them comes a digit, after which nothing is spelled again."""


def tokens(engine: Engine, first: int) -> tuple[str, int]:
    """So many first tokens of the text, as text; and the number of its tokens."""
    ids = engine.tokenizer.encode(TEXT)
    return engine.tokenizer.decode(ids[:first]), len(ids)


@pytest.mark.parametrize("characters", [2, 4, 6])
def test_an_unfinished_word_is_spelled_again(characters, engine):
    whole = "alpha = beta + gamma * delta - epsilon / zeta + eta\n"
    near = whole[: whole.index("epsilon") + characters]
    text, _ = written(engine, Table(engine, whole, {}), near, 16)
    assert text and whole.startswith(near + text)


def test_sdar_reveals_sure_slots_of_a_block_and_always_the_surest(tmp_path):
    folder, _ = masked.folder(tmp_path, "SDAR")
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    near, _ = tokens(engine, 6)
    table = Table(engine, TEXT, {8: 0.86, 9: 0.7, 10: 0.8, 11: 0.6})
    text, seen = written(engine, table, near, 6)
    assert TEXT.startswith(near + text)
    # the prompt leaves two tokens over: the first block has two slots; then one pass a step, and the block of four
    # reveals 8 above .85, then 10, 9 and 11 one by one
    assert [asked[:2] for asked in table.asked[:2]] == [(4, [6, 7]), (8, [8, 9, 10, 11])]
    assert [masks for _, _, masks in table.asked] == [2, 4, 3, 2, 1]
    assert [row.count("mask") for row in seen] == [2, 4, 3, 2, 1, 0]


def test_fast_dllm_takes_a_blocks_first_token_from_the_row_before_and_fills_its_parts_in_order(tmp_path):
    folder, _ = masked.folder(tmp_path, "Fast-dLLM v2")
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    near, count = tokens(engine, 32)
    assert count >= 52, "the text is too short for this test"
    table = Table(engine, TEXT, {})
    text, _ = written(engine, table, near, 20)
    assert TEXT.startswith(near + text) and text
    assert table.asked[0] == (0, [31], 0), "the last row before the block"
    # then seven slots of the first part, eight of the second and four of the third, each part in one step
    assert [(first, wanted[0], masks) for first, wanted, masks in table.asked[1:]] == [
        (32, 32, 31),
        (32, 39, 24),
        (32, 47, 16),
    ]


@pytest.mark.parametrize(("family", "masks"), [("Stable-DiffCoder", [4, 3, 2, 1]), ("A2D-bd3lm", [28, 27, 26, 25])])
def test_a_family_without_a_threshold_reveals_one_slot_a_step(family, masks, tmp_path):
    folder, _ = masked.folder(tmp_path / family, family)
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    near, _ = tokens(engine, 4)
    table = Table(engine, TEXT, {4: 0.98, 5: 0.97, 6: 0.96, 7: 0.95}, default=0.9)
    written(engine, table, near, 4)
    assert [asked[2] for asked in table.asked] == masks


@pytest.mark.parametrize(("name", "more", "block"), [("a-BD3LM", {}, 32), ("b", {"block_size": 8}, 8), ("b", {}, None)])
def test_a_model_in_blocks_is_known_by_its_folders_name_or_its_block(name, more, block, tmp_path):
    folder, _ = masked.folder(tmp_path / name, "A2D-qwen3")
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | more))
    (tmp_path / "link").symlink_to(folder)
    for path in (folder, tmp_path / "link"):
        assert weights.read_config(path).masked_attention.block == block


def test_a_fill_ends_with_a_token_that_continues_after_the_gap(engine, checkpoint):
    near, _ = tokens(engine, 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout_of(engine), "cache", Table(engine, near + " 1\n", {}))
        fill = engine.fill(FillRequest(near, suffix=("\nprint()\n",), max_slots=12))
    assert "\n" not in fill.text and fill.is_finished


def continued(model, ids: list[int], block: int, mask: int, threshold: float, count: int) -> list[int]:
    """What a decoder without a cache writes: every pass computes the whole text under the block mask."""
    ids, last = [*ids], len(ids) + count
    while len(ids) < last:
        slots = [mask] * (block - len(ids) % block)
        while mask in slots:
            logits = masked.reference(model, [*ids, *slots], block)[len(ids) :]
            logits[:, mask] = float("-inf")
            sure, token = logits.softmax(-1).max(-1)
            open_slots = [at for at, each in enumerate(slots) if each == mask]
            surest = max(open_slots, key=lambda at: sure[at])
            for at in open_slots:
                slots[at] = int(token[at]) if sure[at] >= threshold or at == surest else mask
        ids += slots
    return ids[:last]


@pytest.mark.parametrize(("family", "threshold"), [("SDAR", 0.85), ("Stable-DiffCoder", 1.0)])
def test_a_text_is_continued_as_without_a_cache(family, threshold, tmp_path, monkeypatch):
    folder, model = masked.folder(tmp_path, family)
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    decoder = engine.decoder
    monkeypatch.setattr(decoder.rules, "ends_text", np.array([], np.int64))
    prompt = ids_of(6)
    request = GenerateRequest(max_tokens=9)
    found = finished(decoder.generate(request, prompt, Control()), engine.reader)
    expected = continued(model, prompt, 4, engine.reader.config.mask_id, threshold, 9)
    assert found.text == engine.tokenizer.decode(expected[6:])
    assert (found.prompt_tokens, found.cached_tokens, found.tokens, found.finish_reason) == (6, 0, 9, "length")
    again = finished(decoder.generate(request, [*prompt, *expected[6:8]], Control()), engine.reader)
    assert again.cached_tokens == 8


def test_a_generated_text_ends_at_a_stop_text_and_is_told_in_parts(engine):
    layout_of(engine)
    told = list[str]()
    whole = engine.generate(GenerateRequest("def add(", max_tokens=8)).text
    assert whole
    stopped = engine.generate(
        GenerateRequest("def add(", max_tokens=8, stop=(whole[1:3],)), Control(on_text=told.append)
    )
    assert (stopped.text, stopped.finish_reason) == (whole[:1], "stop")
    assert "".join(told) == whole[:1]


def test_a_sampled_text_depends_on_its_seed_and_on_nothing_else(engine):
    layout_of(engine)
    texts = [
        engine.generate(GenerateRequest("def add(", max_tokens=12, sampling=Sampling(1.0, seed=seed))).text
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    "request_", [GenerateRequest("x", schema="{}"), GenerateRequest("x", sampling=Sampling(min_p=0.1))]
)
def test_what_needs_one_token_after_the_other_is_refused(engine, request_):
    with pytest.raises(RequestError, match="choose a causal model"):
        engine.generate(request_)
