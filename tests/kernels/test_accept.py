"""Drafts are accepted as the whole distribution of every row says."""

from dataclasses import fields

import pytest
import torch
from mercury_kernels import accept, reference
from mercury_kernels.operands import Drafts, Matrix

from tests.support.close import close, randn, wide

SHAPES = [(1, 16, 40), (2, 40, 130), (4, 64, 300)]  # requests of 16 rows, channels, vocabulary
ROWS = 16


def drafts_of(requests, vocabulary, device, pairs=3):
    """Random drafts; rows from the second one count, row 3 has no pairs, and some have a share of 0."""
    whole, rows = (requests, ROWS), requests * ROWS
    numbers = torch.arange(rows).view(whole).int() * pairs
    made = {
        "token": torch.zeros(whole).int(),
        "probability": torch.zeros(whole),
        "accepted": torch.zeros(requests).int(),
        "draft": torch.randint(0, vocabulary, whole).int(),
        "first": torch.ones(requests).int(),
        "ban": torch.randint(0, 3, whole).int(),
        "stop": torch.randint(0, 3, whole).int(),
        "share": 0.3 * torch.rand(whole) * (torch.rand(whole) < 0.7),
        "pair_first": numbers,
        "pair_last": numbers + pairs,
        "pair_token": torch.cat([torch.randperm(vocabulary)[:pairs] for _ in range(rows)]).int(),
        "pair_share": torch.rand(rows, pairs).softmax(-1).view(-1),
    }
    made["pair_last"][:, 3] = made["pair_first"][:, 3]
    made["share"][:, 3] = 0.0
    return Drafts(**{name: each.contiguous().to(device) for name, each in made.items()})


def lists_of(vocabulary, device):
    lists = torch.rand(3, vocabulary) < 0.2
    lists[0] = False
    return lists.to(device)


def twin_of(drafts):
    return Drafts(*(wide(getattr(drafts, field.name).clone()) for field in fields(Drafts)))


def alike(hidden, matrix, lists, drafts, norm, tolerance):
    expected = twin_of(drafts)
    accept.accept(hidden, matrix, lists, drafts, 9999, norm, 1e-5)
    reference.accept(wide(hidden), wide(matrix), lists, expected, 9999, wide(norm), 1e-5)
    close(drafts.probability, expected.probability.float(), tolerance)
    differ = float((drafts.token != expected.token).float().mean())
    assert differ <= (0.0 if tolerance < 1e-3 else 0.05)
    if not differ:
        assert drafts.accepted.tolist() == expected.accepted.tolist()
    return drafts


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_decisions_equal_their_twin(device, shape, dtype, normed):
    requests, channels, vocabulary = shape
    hidden = randn(requests * ROWS, channels, dtype=dtype, device=device)
    matrix = Matrix(randn(vocabulary, channels, dtype=dtype, device=device, scale=channels**-0.5))
    norm = randn(channels, dtype=dtype, device=device) if normed else None
    drafts = drafts_of(requests, vocabulary, device)
    found = alike(hidden, matrix, lists_of(vocabulary, device), drafts, norm, 5e-5 if dtype is torch.float32 else 4e-2)
    assert vocabulary < 300 or {True, False} == set((found.token == 9999).view(-1).tolist())


@pytest.mark.parametrize("right", [0, 3, 14])
def test_drafts_count_up_to_the_first_that_is_not_the_best_token(device, right):
    hidden, matrix = randn(2 * ROWS, 32, device=device), Matrix(randn(200, 32, device=device))
    lists, drafts = lists_of(200, device), drafts_of(2, 200, device)
    accept.accept(hidden, matrix, lists, drafts, 9999)
    assert drafts.accepted.tolist() == [0, 0]
    drafts.draft.copy_(drafts.token)
    drafts.draft[0, 1 + right] = -1
    drafts.draft[1, -1] = -1
    drafts.draft[:, 0] = -1  # before the first row that counts
    accept.accept(hidden, matrix, lists, drafts, 9999)
    assert drafts.accepted.tolist() == [right, 14]


def test_a_pair_of_a_large_share_decides_unless_it_is_banned(device):
    hidden, matrix = randn(ROWS, 32, device=device, scale=0.1), Matrix(randn(200, 32, device=device))
    lists, drafts = lists_of(200, device), drafts_of(1, 200, device, pairs=1)
    drafts.share.fill_(0.9)
    drafts.pair_last.copy_(drafts.pair_first + 1)
    drafts.pair_share.fill_(1.0)
    drafts.ban.fill_(1)
    drafts.stop.fill_(0)
    accept.accept(hidden, matrix, lists, drafts, 9999)
    banned = lists[1][drafts.pair_token.long()]
    assert banned.any() and not banned.all()
    assert ((drafts.token.view(-1) == drafts.pair_token) == ~banned).all()


def test_weights_of_nan_give_a_chance_of_nan(device):
    hidden, matrix = randn(ROWS, 32, device=device), Matrix(torch.full((200, 32), float("nan"), device=device))
    drafts = drafts_of(1, 200, device)
    accept.accept(hidden, matrix, lists_of(200, device), drafts, 9999)
    assert drafts.probability.isnan().all()
