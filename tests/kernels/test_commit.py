"""The commit on the device follows the engine's unmasking rule and leaves canvases consistent."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mercury_engine.decoding.diffusion.unmasking import choose_by_entropy
from mercury_kernels import commit, reference
from mercury_kernels.operands import CanvasSlots, TokenChoice

MASK, END = 500, 501
ENTROPIES = st.one_of(st.floats(0, 6, width=32), st.sampled_from([0.0, 1e-6, 0.5, 1e-30]))
ROWS = st.lists(st.tuples(ENTROPIES, st.booleans()), min_size=1, max_size=12)


@given(ROWS, st.one_of(st.floats(0, 3), st.sampled_from([0.0, 0.5, 1.0])))
def test_the_twins_rule_is_the_engines_rule(slots, bound):
    entropy, masked = (torch.tensor(column) for column in zip(*slots, strict=True))
    found = reference.within_bound(entropy.float()[None], masked[None], torch.tensor([bound]))
    assert np.array_equal(found[0].numpy(), choose_by_entropy(entropy.float().numpy(), masked.numpy(), bound))


def test_a_masked_slot_is_committed_even_if_entropies_are_nan():
    masked = torch.tensor([[False, True, True, False]])
    found = reference.within_bound(torch.full((1, 4), float("nan")), masked, torch.zeros(1))
    assert found.tolist() == [[False, True, False, False]]


def state(ids, rows, bound, device="cpu", most=99, probability=None):
    """Canvases whose row 0 is the last prefix token; a probability of 0 makes a token a draft."""
    batch, columns = ids.shape
    probability = torch.ones(batch, columns) if probability is None else probability
    return CanvasSlots(
        ids.int().to(device),
        rows.int().to(device),
        bound.float().to(device),
        torch.full((batch,), most, dtype=torch.int32, device=device),
        probability.to(device, copy=True),
        torch.zeros(batch, dtype=torch.int32, device=device),
        torch.zeros(batch, dtype=torch.int32, device=device),
    )


def drawn(batch, columns, device, ends=0.1):
    """Canvases half open, some shorter than the bucket, some idle, and a choice for every row."""
    ids = torch.where(torch.rand(batch, columns) < 0.6, MASK, torch.randint(0, 500, (batch, columns)))
    rows = torch.randint(0, columns + 1, (batch,))
    token = torch.where(torch.rand(batch * columns) < ends, END, torch.randint(0, 500, (batch * columns,)))
    top = torch.randn(batch * columns)
    entropy = 0.3 * torch.rand(batch * columns).round(decimals=1)  # with ties
    choice = TokenChoice(*(t.to(device) for t in (token.int(), top, top + entropy, entropy)))
    return ids, rows, torch.rand(batch), choice


def equal(left, right):
    for name in CanvasSlots.__slots__:
        torch.testing.assert_close(getattr(left, name), getattr(right, name), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("drafts", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(1, 2), (3, 5), (4, 17), (2, 33), (2, 65)])
def test_commit_equals_its_twin_step_by_step(device, shape, drafts):
    ids, rows, bound, _ = drawn(*shape, device)  # type: ignore[call-arg]
    probability = (torch.rand(shape) < drafts).logical_not().float()
    left, right = (state(ids, rows, bound, device, most=4, probability=probability) for _ in range(2))
    for _ in range(5):
        choice = drawn(*shape, device)[3]  # type: ignore[call-arg]
        kept = torch.rand(shape, device=device).flatten() < 0.5  # half of the drafts are the best token of their row
        choice.token.copy_(torch.where(kept, left.ids.roll(-1, 1).flatten(), choice.token))
        commit.commit(left, choice, MASK, END)
        reference.commit(right, choice, MASK, END)
        equal(left, right)


@settings(max_examples=25)
@given(ROWS, st.sampled_from([0.0, 0.5, 1.0, 2.0]))
@example([(0.5, True)] * 4, 1.0)  # the bound itself is allowed
def test_the_kernel_commits_what_the_engines_rule_chooses(slots, bound):
    from mercury_kernels.launch import INTERPRETED

    device = "cpu" if INTERPRETED.value else "cuda"
    entropy, masked = (torch.tensor(column) for column in zip(*slots, strict=True))
    columns = len(slots) + 1
    ids = torch.cat((torch.tensor([3]), torch.where(masked, MASK, 4)))[None]
    made = state(ids, torch.tensor([columns]), torch.tensor([bound]), device)
    risk = torch.cat((entropy.float(), torch.zeros(1))).to(device)
    token = torch.full((columns,), 7, dtype=torch.int32, device=device)
    commit.commit(made, TokenChoice(token, risk, risk, risk), MASK, END)
    chosen = choose_by_entropy(entropy.float().numpy(), masked.numpy(), bound)
    assert np.array_equal((made.ids[0, 1:] == 7).cpu().numpy(), chosen)


def test_everything_behind_a_committed_end_marker_is_end_and_the_canvas_is_done(device):
    ids = torch.tensor([[1, 5, MASK, MASK, 6, MASK]])
    made = state(ids, torch.tensor([6]), torch.tensor([0.0]), device)
    entropy = torch.tensor([9.0, 0.1, 0.9, 9.0, 0.9, 9.0], device=device)
    token = torch.tensor([0, END, 8, 0, 8, 0], dtype=torch.int32, device=device)
    commit.commit(made, TokenChoice(token, entropy, entropy, entropy), MASK, END)
    assert made.ids.tolist() == [[1, 5, END, END, END, END]]
    assert (made.open.tolist(), made.steps.tolist()) == ([0], [1])


def test_a_step_with_drafts_keeps_the_right_ones_and_does_nothing_else(device):
    ids = torch.tensor([[1, 5, 6, MASK, 7, 8]])
    probability = torch.tensor([[1.0, 0.0, 0.0, 1.0, 1.0, 0.0]])  # the 7 is committed
    made = state(ids, torch.tensor([6]), torch.tensor([99.0]), device, probability=probability)
    entropy = torch.full((6,), 0.1, device=device)
    token = torch.tensor([5, 9, 9, 9, 8, 0], dtype=torch.int32, device=device)
    commit.commit(made, TokenChoice(token, -entropy, entropy, entropy), MASK, END)
    assert made.ids.tolist() == [[1, 5, MASK, MASK, 7, 8]]
    assert made.probability[0].cpu().tolist() == pytest.approx([1.0, 0.8187, 0.0, 1.0, 1.0, 0.8187], abs=1e-4)
    assert (made.open.tolist(), made.steps.tolist()) == ([2], [1])
    commit.commit(made, TokenChoice(token, -entropy, entropy, entropy), MASK, END)
    assert made.ids.tolist() == [[1, 5, 9, 9, 7, 8]]
    assert float(made.probability.min()) > 0


def test_a_draft_behind_an_end_marker_is_a_draft_no_longer(device):
    ids, probability = torch.tensor([[1, MASK, 6, MASK]]), torch.tensor([[1.0, 1.0, 0.0, 1.0]])
    made = state(ids, torch.tensor([4]), torch.tensor([0.0]), device, most=1, probability=probability)
    entropy = torch.tensor([0.1, 0.2, 0.3, 0.0], device=device)
    token = torch.tensor([END, 6, 9, 0], dtype=torch.int32, device=device)
    commit.commit(made, TokenChoice(token, entropy, entropy, entropy), MASK, END)
    assert made.ids.tolist() == [[1, END, END, END]]
    assert made.probability[0, 2:].tolist() == [1.0, 1.0]


def test_the_last_step_commits_every_open_slot(device):
    ids, _, bound, choice = drawn(2, 20, device, ends=0.0)
    made = state(ids, torch.tensor([20, 13]), bound, device, most=2)
    commit.commit(made, choice, MASK, END)
    assert int(made.open.max()) > 0
    commit.commit(made, choice, MASK, END)
    assert (made.open.tolist(), made.steps.tolist()) == ([0, 0], [2, 2])


def test_a_finished_canvas_counts_no_more_steps(device):
    ids, _, bound, choice = drawn(2, 6, device, ends=1.0)
    made = state(ids, torch.tensor([6, 0]), bound, device)
    for _ in range(8):
        commit.commit(made, choice, MASK, END)
    before = made.ids.clone(), made.steps.clone()
    commit.commit(made, drawn(2, 6, device)[3], MASK, END)
    assert made.open.tolist() == [0, 0]
    assert torch.equal(made.ids, before[0])
    assert torch.equal(made.steps, before[1])
    assert int(made.steps[1]) == 0
