"""Queries and the cache write equal their twins, as an epilogue and fused with norm and projection."""

from dataclasses import dataclass

import pytest
import torch
from mercury_kernels import qkv, reference
from mercury_kernels.operands import Matrix, RowPositions

from tests.support.close import close, randn, wide

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [  # rows, query heads, key heads, head width, channels, page
    (1, 1, 1, 8, 8, 16),
    (5, 3, 1, 16, 40, 16),
    (17, 4, 2, 24, 64, 16),
    (33, 9, 3, 64, 100, 32),
]


@dataclass
class Case:
    places: RowPositions
    keys: torch.Tensor
    values: torch.Tensor
    slots: torch.Tensor

    def caches(self):
        return self.keys.clone(), self.values.clone()


def case(rows, heads, width, page, dtype, device):
    """Each row has its own place in three shuffled pages."""
    cos, sin = reference.rotary_table(300, width, 10_000.0, torch.device("cpu"))
    places = RowPositions((torch.arange(rows) + 37).int().to(device), cos.to(device), sin.to(device))
    keys, values = (randn(3, heads, page, width, dtype=dtype, device=device) for _ in range(2))
    return Case(places, keys, values, torch.randperm(3 * page)[:rows].int().to(device))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rotation_and_cache_write_equal_their_twin(device, shape, dtype):
    rows, queries, heads, width, _, page = shape
    made = case(rows, heads, width, page, dtype, device)
    x = randn(rows, (queries + 2 * heads) * width, dtype=dtype, device=device)
    keys, values = made.caches()
    right_keys, right_values = wide(made.caches())
    q = qkv.rotate_and_store(x, made.places, keys, values, made.slots)
    right = reference.rotate_and_store(wide(x), made.places, right_keys, right_values, made.slots)
    for found, expected in ((q, right), (keys, right_keys), (values, right_values)):
        close(found, expected)


def test_a_projection_in_two_kernels_equals_its_twin(device, monkeypatch):
    monkeypatch.setattr(qkv, "LARGE", 16)
    monkeypatch.setattr(qkv, "multiprocessors", lambda _: 1000)
    for shape in SHAPES[2:]:
        rows, queries, heads, width, channels, _ = shape
        assert qkv.reads_many_rows(device, rows, channels, (queries + 2 * heads) * width, width)
        test_fused_projection_equals_its_twin(device, shape, torch.float32, False)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_fused_projection_equals_its_twin(device, shape, dtype, biased):
    rows, queries, heads, width, channels, page = shape
    made = case(rows, heads, width, page, dtype, device)
    x, norm = randn(rows, channels, dtype=dtype, device=device), randn(channels, dtype=dtype, device=device)
    outputs = (queries + 2 * heads) * width
    matrix = Matrix(randn(outputs, channels, dtype=dtype, device=device))
    if biased:
        matrix = Matrix(matrix.weight, randn(outputs, dtype=dtype, device=device))
    keys, values = made.caches()
    right_keys, right_values = wide(made.caches())
    q = qkv.project_qkv(x, norm, 1e-5, matrix, made.places, keys, values, made.slots)
    right = reference.project_qkv(
        wide(x), wide(norm), 1e-5, wide(matrix), made.places, right_keys, right_values, made.slots
    )
    for found, expected in ((q, right), (keys, right_keys), (values, right_values)):
        close(found, expected)
