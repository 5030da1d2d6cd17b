"""Products for few rows equal their twins with every norm and epilogue, in every weight format."""

import math

import pytest
import torch
from mercury_kernels import linear, reference
from mercury_kernels.operands import Matrix

from tests.support.close import close, coded, randn, wide

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [(1, 16, 8), (5, 33, 70), (33, 96, 576), (70, 40, 130)]  # rows, outputs, inputs
CODED = [(1, 16, 32), (33, 96, 576), (70, 40, 160)]
"""Shapes in eight bits."""
PARTS = {
    "alone": {},
    "norm and gate": {"norm": True, "gated": True},
    "bias": {"bias": True},
    "residual": {"residual": True},
    "an adapter": {"residual": True, "rank": 4},
    "all before a gate": {"norm": True, "gated": True, "bias": True, "rank": 20},
}


def made(shape, dtype, device, norm=False, gated=False, bias=False, residual=False, rank=0, is_coded=False):
    """x, the matrix, and keyword arguments for kernel and twin."""
    rows, outputs, inputs = shape
    width = outputs * (2 if gated else 1)
    x = randn(rows, inputs, dtype=dtype, device=device)
    weight = randn(width, inputs, dtype=dtype, device=device, scale=inputs**-0.5)
    parts = {
        "norm": randn(inputs, dtype=dtype, device=device) if norm else None,
        "residual": randn(rows, outputs, dtype=dtype, device=device) if residual else None,
    }
    down = randn(rank, inputs, dtype=dtype, device=device, scale=inputs**-0.5) if rank else None
    up = randn(width, rank, dtype=dtype, device=device) if rank else None
    weight, scales = coded(weight) if is_coded else (weight, None)
    matrix = Matrix(weight, randn(width, dtype=dtype, device=device) if bias else None, down, up, scales)
    return x, matrix, parts | {"eps": 1e-5, "gated": gated}


def shares(monkeypatch, splits, depth=32):
    """Small tiles and a fixed number of shares."""
    monkeypatch.setattr(linear, "tiles", lambda *_: (32, 32, depth, splits))


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "is_coded"), [*((each, False) for each in SHAPES), *((each, True) for each in CODED)]
)
def test_linear_equals_its_twin(device, shape, is_coded, dtype, parts, splits, monkeypatch):
    shares(monkeypatch, splits)
    x, matrix, kwargs = made(shape, dtype, device, **PARTS[parts], is_coded=is_coded)
    found = linear.linear(x, matrix, **kwargs)
    assert found.dtype is dtype
    close(found, reference.linear(wide(x), wide(matrix), **wide(kwargs)))


def test_shares_are_added_in_the_same_order_whichever_finishes_last(device, monkeypatch):
    shares(monkeypatch, 4)
    x, matrix, kwargs = made((7, 40, 200), torch.bfloat16, device, norm=True, gated=True)
    first = linear.linear(x, matrix, **kwargs)
    for _ in range(3):  # every run leaves the counters at zero
        assert torch.equal(linear.linear(x, matrix, **kwargs), first)


@pytest.mark.parametrize("bytes_", [2, 4])
def test_default_tiles_cover_every_input(bytes_):
    """Shares are whole loop steps, and none is empty for the shapes of real models."""
    for rows, outputs, inputs in ((33, 3072, 576), (1, 576, 1536), (64, 4864, 896), (17, 3584, 18944)):
        high, _, depth, splits = linear.tiles(torch.device("cpu"), rows, outputs, inputs, bytes_)
        each = math.ceil(math.ceil(inputs / depth) / splits) * depth
        assert high * math.ceil(rows / high) >= rows
        assert (splits - 1) * each < inputs <= splits * each


def test_no_rows_give_no_rows(device):
    x, matrix, kwargs = made((1, 16, 8), torch.float32, device)
    assert linear.linear(x[:0], matrix, **kwargs).shape == (0, 16)


@pytest.mark.parametrize(
    ("outputs", "inner", "gated"), [(3584, 3584, False), (3584, 18944, False), (18944, 3584, True)]
)
@pytest.mark.parametrize("rows", [16, 33, 64])
@pytest.mark.parametrize("processors", [108, 132, 148])
def test_a_large_product_reads_at_most_half_as_much_of_its_rows_as_of_its_weights(
    monkeypatch, outputs, inner, gated, rows, processors
):
    monkeypatch.setattr(linear, "multiprocessors", lambda _: processors)
    high, wide, _, splits = linear.tiles(torch.device("cpu"), rows, outputs, inner, 2, gated)
    assert high <= wide * (1 + gated) / 2
    assert -(-outputs // wide) * splits >= processors  # every processor streams weights
