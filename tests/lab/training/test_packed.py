"""Packed rows (GPU) compute what padded ones (CPU) do."""

import random
from dataclasses import replace

import pytest
import torch
from mercury_engine.models import decoder_weights
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_kernels.ops import segmented_attention
from mercury_lab.training.data import corpus
from mercury_lab.training.examples.gaps import GapSettings
from mercury_lab.training.examples.mixture import Mixture, WindowSampler
from mercury_lab.training.optimisation import attention
from mercury_lab.training.optimisation.attention import TILE_SIZE, Ranges, tiles
from mercury_lab.training.optimisation.loss import LateStage, LossDivisors, layout_loss, mean_nats
from mercury_lab.training.optimisation.objective import Noise, corrupt
from mercury_lab.training.optimisation.packed import Packed, Room
from mercury_lab.training.optimisation.sharing import StepCost
from mercury_lab.training.optimisation.steps import WriterSteps
from torch.nn.attention import flex_attention as flex
from torch.utils.flop_counter import FlopCounterMode

from tests.support import tiny, training_data


@pytest.fixture(scope="module")
def sampler(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    tokenizer = Tokenizer(training_data.base(folder / "base"))
    return WindowSampler(
        tokenizer, Mixture(corpus.read_files(training_data.corpus(folder / "corpus"))), 5, GapSettings()
    )


@pytest.fixture
def network():
    return tiny.network(rank=4)


def steps(sampler, network, *, packed, files=2):
    return WriterSteps(sampler, network.config, files, Noise(complement=True), 0, packed)


def plain(q, k, v, block_mask, scale, enable_gqa):
    """What FlexAttention computes, from the mask's own function."""
    rows, keys = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    seen = block_mask.mask_mod(None, None, rows, keys)
    return (q @ k.transpose(-1, -2) * scale).masked_fill(~seen, float("-inf")).softmax(-1) @ v


def learned(network, layouts, late_stage):
    totals = LossDivisors.of(layouts)
    network.zero_grad()
    loss, told = 0.0, []
    for layout in layouts:
        part, of_part = layout_loss(network, layout, totals, late_stage)
        part.backward()
        loss += float(part.detach())
        told.append(of_part)
    gradients = {n: p.grad.clone() for n, p in decoder_weights.adapter_parameters(network).items()}
    return loss, mean_nats(told, network.config.end_id), gradients


@pytest.mark.parametrize("late_stage", [LateStage(), LateStage(guesses=True, sharpen=0.05)])
def test_packed_rows_have_the_loss_and_the_gradients_of_padded_ones(sampler, network, monkeypatch, late_stage):
    monkeypatch.setattr(attention, "_attention", lambda on_gpu: plain)
    loss, told, gradients = learned(network, steps(sampler, network, packed=False)[0], late_stage)
    packed = steps(sampler, network, packed=True).with_room()[0]
    assert [type(layout) for layout in packed] == [Packed]
    loss_packed, told_packed, gradients_packed = learned(network, packed, late_stage)
    assert loss_packed == pytest.approx(loss, rel=1e-5)
    assert told_packed["first"] == pytest.approx(told["first"], rel=1e-4)
    for name, gradient in gradients.items():
        assert gradient.abs().sum() > 0, name
        torch.testing.assert_close(gradients_packed[name], gradient, rtol=1e-3, atol=1e-4 * float(gradient.abs().max()))


BEFORE, ROWS, BEHIND = 2 * TILE_SIZE, 2 * TILE_SIZE, TILE_SIZE
"""Keys toward the prefix, the rows' own, keys toward the suffix."""

KEYS = BEFORE + ROWS + BEHIND


def ranges():
    """Rows that see a stretch of the prefix, the 16 rows around them, and a stretch of the suffix (or nothing)."""
    torch.manual_seed(0)
    row = torch.arange(ROWS)
    prefix, suffix = torch.randint(0, BEFORE - 40, (ROWS,)), torch.randint(0, BEHIND - 40, (ROWS,)) + BEFORE + ROWS
    low = torch.stack((prefix, BEFORE + row // 16 * 16, suffix))
    size = torch.stack((torch.randint(0, 40, (ROWS,)), torch.full((ROWS,), 16), torch.randint(0, 40, (ROWS,))))
    low[0, :TILE_SIZE], size[0, :TILE_SIZE] = 0, BEFORE - TILE_SIZE // 2  # so that some tiles are seen by all
    return Ranges.of(low.int(), (low + size).int(), KEYS)


def test_flex_attention_over_ranges_is_segmented_attention_with_a_bias_forward_and_backward(monkeypatch):
    monkeypatch.setattr(flex, "_validate_device", lambda *tensors: None)  # it refuses gradients on a CPU
    seen, heads, groups, width = ranges(), 2, 2, 16
    torch.manual_seed(1)
    sizes = (groups * ROWS, groups * ROWS, BEFORE, BEFORE, ROWS, ROWS, BEHIND, BEHIND)
    inputs = [torch.randn(1, heads, size, width, requires_grad=True) for size in sizes]
    q_near, q_away, *keys_and_values = inputs
    bias = torch.zeros(ROWS, KEYS).masked_fill(~seen.dense(KEYS), float("-inf")).repeat(groups, 1)[None, None]
    parts = zip(
        (q_near, q_near, q_away),
        keys_and_values[::2],
        keys_and_values[1::2],
        bias.split((BEFORE, ROWS, BEHIND), -1),
        strict=True,
    )
    segments = list(parts)
    right, found = segmented_attention(segments), seen.attend(segments[:2], segments[2:])
    torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-5)
    weight = torch.randn_like(right)
    ours, theirs = (torch.autograd.grad((out * weight).sum(), inputs) for out in (found, right))
    for mine, other in zip(ours, theirs, strict=True):
        assert other.abs().sum() > 0
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)


def test_tiles_are_left_out_exactly_where_no_row_sees_a_key():
    seen = ranges()
    dense = seen.dense(KEYS).view(ROWS // TILE_SIZE, TILE_SIZE, KEYS // TILE_SIZE, TILE_SIZE)
    touched, covered = tiles(seen.low, seen.high, KEYS)
    assert torch.equal(touched, dense.any(3).any(1))
    assert torch.equal(covered, dense.all(3).all(1))
    assert covered.any()
    assert not touched.all()
    assert torch.equal(seen.mask.to_dense()[0, 0].bool(), touched)


def test_every_step_has_the_same_shapes(sampler, network):
    made = steps(sampler, network, packed=True, files=4).with_room()
    rooms = {layout.room for step in range(8) for layout in made[step]}
    assert rooms == {made.room}


def test_windows_without_room_are_left_out_of_a_step(sampler, network):
    made = steps(sampler, network, packed=True)
    (whole,) = made[0]
    small = replace(made, room=replace(whole.room, rows=whole.room.rows - TILE_SIZE))
    (part,) = small[0]
    assert 0 < part.rows.slots < whole.rows.slots
    (alone,) = replace(made, room=Room(rows=TILE_SIZE))[0]
    assert alone.rows.slots == part.rows.slots
    assert alone.room.rows > TILE_SIZE


def test_windows_without_room_for_all_are_validated_in_parts(sampler, network):
    made = steps(sampler, network, packed=True)
    windows = sampler.windows(4, random.Random(0))
    canvases = [corrupt(network.config, window, random.Random(0), Noise()) for window in windows]
    (whole,) = made.layouts(windows, canvases)
    parts = replace(made, room=replace(whole.room, rows=whole.room.rows * 3 // 4)).layouts(windows, canvases)
    assert len(parts) > 1
    assert sum(part.rows.slots for part in parts) == whole.rows.slots


def test_layers_are_compiled_once_for_all_steps(sampler, network, monkeypatch):
    monkeypatch.setattr(attention, "_attention", lambda on_gpu: plain)
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    made = steps(sampler, network, packed=True).with_room()
    for layer in network.layers:
        layer.compile(dynamic=False, backend=compiler)
    for step in range(2):
        learned(network, made[step], LateStage())
        assert len(graphs) == 3, "one for blocks, one for near stacks, one for canvases"


@pytest.mark.gpu
@pytest.mark.parametrize("late_stage", [LateStage(), LateStage(guesses=True, sharpen=0.05)])
def test_a_gpu_learns_from_packed_rows_what_a_cpu_learns_from_padded_ones(sampler, late_stage):
    torch.compiler.reset()
    shape = {"head_dim": 16, "num_attention_heads": 6, "num_key_value_heads": 2}
    here, there = tiny.network(rank=4, **shape), tiny.network(rank=4, **shape).cuda()
    for layer in there.layers:
        layer.compile(dynamic=False)
    made = steps(sampler, there, packed=True).with_room()
    for step in range(2):
        loss, _, gradients = learned(here, steps(sampler, here, packed=False)[step], late_stage)
        loss_there, _, gradients_there = learned(there, made[step], late_stage)
        assert loss_there == pytest.approx(loss, rel=1e-2)
        for name, gradient in gradients.items():
            scale = float(gradient.abs().max())
            torch.testing.assert_close(gradients_there[name].cpu(), gradient, rtol=0.05, atol=0.05 * scale)


def test_the_work_of_a_step_is_what_its_operations_cost(sampler, network):
    layouts = steps(sampler, network, packed=False)[0]
    with FlopCounterMode(display=False) as counter:
        learned(network, layouts, LateStage())
    counted = sum((layout.work for layout in layouts), StepCost()).flops(network.config)
    assert 0.5 * counter.get_total_flops() < counted < counter.get_total_flops()  # the rest is padding
