"""Queries, keys and the write into the buffer of keys equal their twin."""

import pytest
import torch
from mercury_kernels import qkv, reference
from mercury_kernels.operands import Matrix, Rows

from tests.support.close import close, coded, randn, wide

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [  # rows, query heads, key heads, head width, channels
    (1, 1, 1, 8, 8),
    (5, 3, 1, 16, 40),
    (17, 4, 2, 24, 64),
    (33, 9, 3, 64, 100),
]


@pytest.mark.parametrize(
    "extras",
    [(), ("bias", "adapter"), ("norms", "adapter"), ("bias", "codes")],
    ids=["plain", "biases", "norms", "eight bits"],
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_projection_equals_its_twin(device, shape, dtype, extras):
    rows, queries, heads, width, channels = shape
    channels = 32 + channels // 32 * 32 if "codes" in extras else channels
    outputs, length = (queries + 2 * heads) * width, 60
    tables = (each.to(device) for each in reference.rotary_angles(torch.arange(length), width, 10_000.0))
    position = torch.randperm(length, device=device)[:rows]
    places = Rows(position, position, position, position.new_full((), 20), *tables)
    buffers = [randn(heads, length + 4, width, dtype=dtype, device=device)[:, :length] for _ in range(2)]
    x, norm = randn(rows, channels, dtype=dtype, device=device), randn(channels, dtype=dtype, device=device)
    weight = randn(outputs, channels, dtype=dtype, device=device)
    factors = [randn(*shape, dtype=dtype, device=device) for shape in ((6, channels), (outputs, 6))]
    bias = randn(outputs, dtype=dtype, device=device) if "bias" in extras else None
    weight, scales = coded(weight) if "codes" in extras else (weight, None)
    matrix = Matrix(weight, bias, *(factors if "adapter" in extras else (None, None)), scales=scales)
    norms = randn(2, width, dtype=dtype, device=device) if "norms" in extras else None
    right = [each.double() for each in buffers]
    expected = reference.project_qkv(wide(x), wide(norm), 1e-5, wide(matrix), wide(norms), places, *right)
    found = qkv.project_qkv(x, norm, 1e-5, matrix, norms, places, *buffers)
    for made, other in zip((*found, *buffers), (*expected, *right), strict=True):
        close(made, other)
