"""RMSNorm, SwiGLU and row quantisation equal their twins."""

import pytest
import torch
from mercury_kernels import norm, quantize, reference, swiglu

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


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
@pytest.mark.parametrize("shape", [(1, 16), (5, 33), (3, 576)])
def test_codes_times_scale_restore_the_rows(device, shape, dtype, normed):
    x = randn(*shape, device=device, scale=3.0)
    weight = randn(shape[-1], device=device) if normed else None
    codes, scale = quantize.quantize_rows(x, dtype, weight, 1e-5)
    wanted = x if weight is None else reference.rms_norm(x, weight, 1e-5)
    right, scales = reference.quantize_rows(x, dtype, weight, 1e-5)
    close(scale, scales)
    error = (codes.float() * scale[:, None] - wanted).abs()
    step = scale[:, None] if dtype is torch.int8 else (wanted.abs() / 8).clamp_min(2**-9 * float(scale.max()))
    sound = torch.ones_like(error, dtype=torch.bool)
    if dtype is torch.float8_e4m3fn and device.type == "cpu":  # the interpreter rounds subnormals and carries wrongly
        size = right.float().abs()
        sound = (size > 2**-6) & (size.log2() % 1 != 0)
        assert float(sound.float().mean()) > 0.7
    assert bool((error <= 0.51 * step)[sound].all())


def test_a_row_of_zeros_has_zero_codes(device):
    codes, scale = quantize.quantize_rows(torch.zeros(2, 16, device=device), torch.int8)
    assert not codes.any()
    assert bool((scale > 0).all())
