"""The fused head equals a computation from the whole logits."""

import pytest
import torch
from mercury_kernels import head, reference
from mercury_kernels.operands import Matrix

from tests.support.close import close, randn, wide

SHAPES = [(1, 16, 3), (5, 40, 130), (33, 64, 300), (70, 24, 257)]  # rows, channels, vocabulary


def made(shape, dtype, device, lists=2):
    rows, channels, vocabulary = shape
    banned = torch.rand(lists, vocabulary) < 0.3
    banned[:, 0] = False
    ban = torch.randint(0, lists, (rows,)).int()
    hidden = randn(rows, channels, dtype=dtype, device=device)
    return hidden, Matrix(randn(vocabulary, channels, dtype=dtype, device=device)), banned.to(device), ban.to(device)


def alike(found, expected, tolerance):
    """Asserts the same token, or one whose logit equals the best up to rounding."""
    for name in ("top", "total"):
        close(getattr(found, name), getattr(expected, name), tolerance)
    assert float((found.entropy - expected.entropy).abs().max()) <= 30 * tolerance
    differ = found.token != expected.token
    assert float(differ.float().mean()) <= (0.0 if tolerance < 1e-4 else 0.05)


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_choices_equal_their_twin(device, shape, dtype, normed):
    hidden, matrix, banned, ban = made(shape, dtype, device)
    norm = randn(shape[1], dtype=dtype, device=device) if normed else None
    found = head.choices(hidden, matrix, banned, ban, norm, 1e-5)
    expected = reference.choices(wide(hidden), wide(matrix), banned, ban, wide(norm), 1e-5)
    alike(found, expected, 2e-5 if dtype is torch.float32 else 1e-2)
    assert not bool(banned[ban.long(), found.token.long()].any())


def test_the_lowest_of_equal_tokens_is_chosen_across_tiles(device):
    hidden = torch.ones(1, 16, device=device)
    weight = torch.zeros(300, 16, device=device)
    weight[[7, 100, 200, 299]] = 1.0
    banned, ban = torch.zeros(1, 300, dtype=torch.bool, device=device), torch.zeros(1, dtype=torch.int32, device=device)
    assert int(head.choices(hidden, Matrix(weight), banned, ban).token) == 7
    banned[0, :100] = True
    assert int(head.choices(hidden, Matrix(weight), banned, ban).token) == 100


def test_one_allowed_token_is_certain(device):
    hidden, matrix, banned, ban = made(SHAPES[2], torch.float32, device, 1)
    banned[:] = True
    banned[0, 250] = False
    found = head.choices(hidden, matrix, banned, ban)
    assert set(found.token.tolist()) == {250}
    assert float(found.entropy.abs().max()) < 1e-5
    close(found.top, found.total)


def test_huge_logits_stay_finite(device):
    hidden, matrix, banned, ban = made(SHAPES[1], torch.float32, device)
    found = head.choices(hidden * 1e3, matrix, banned, ban)
    assert all(bool(torch.isfinite(t).all()) for t in (found.top, found.total, found.entropy))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_logits_choose_a_token_of_the_vocabulary_with_nan_chance(device):
    """The next step looks the token up in the embedding, so it must be in range."""
    hidden, matrix, banned, ban = made(SHAPES[1], torch.float32, device)
    found = head.choices(hidden * float("nan"), matrix, banned, ban)
    assert bool(((found.token >= 0) & (found.token < matrix.outputs)).all())
    assert bool((found.top - found.total).isnan().all())
