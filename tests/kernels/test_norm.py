"""RMSNorm, SwiGLU and row quantisation equal their twins."""

import pytest
import torch
from mercury_kernels import norm, reference, swiglu

from tests.support.close import close, randn, wide

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SHAPES = [(1, 1), (3, 7), (2, 5, 96), (4, 576), (2, 1000)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm_equals_its_twin(device, shape, dtype):
    x, weight = randn(*shape, dtype=dtype, device=device), randn(shape[-1], dtype=dtype, device=device)
    close(norm.rms_norm(x, weight, 1e-5), reference.rms_norm(wide(x), wide(weight), 1e-5))


def test_norm_takes_strided_and_empty_inputs(device):
    x, weight = randn(6, 64, device=device)[::2, ::2], randn(32, device=device)
    close(norm.rms_norm(x, weight, 1e-5), reference.rms_norm(wide(x), wide(weight), 1e-5))
    assert norm.rms_norm(x[:0], weight, 1e-5).shape == (0, 32)


def test_large_values_do_not_overflow_in_half_precision(device):
    x, weight = randn(2, 64, dtype=torch.float16, device=device, scale=1e4), torch.ones(64, device=device).half()
    close(norm.rms_norm(x, weight, 1e-5), reference.rms_norm(wide(x), wide(weight), 1e-5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 2), (3, 34), (2, 3, 192), (2, 2 * 1030)])
def test_swiglu_equals_its_twin(device, shape, dtype):
    x = randn(*shape, dtype=dtype, device=device)
    close(swiglu.swiglu(x), reference.swiglu(wide(x)))
