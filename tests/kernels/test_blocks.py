"""GGUF's blocks: their values are ggml's, and every build multiplies them in the form it lays them out in."""

import compile_kernels
import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from mercury_kernels.cpu import blocks
from mercury_kernels.cpu.blocks import BlockMatrix, form_of, rounded, widened
from mercury_kernels.cpu.layers import WHOLE_MODEL, Layers

from tests.support import tiny_gguf

pytestmark = pytest.mark.skipif(compile_kernels.compiler() is None, reason="no C compiler")

TYPES = pytest.mark.parametrize("name", [kind.name for kind in blocks.TYPES.values()])

INPUTS, OUTPUTS = 512, 77

TOLERANCE = 0.012
"""Relative error of 8-bit activations, and of floats rounded to eight bits."""


def matrix(name: str, outputs: int = OUTPUTS) -> BlockMatrix:
    kind = GGMLQuantizationType[name]
    return BlockMatrix(blocks.TYPES[kind.value], tiny_gguf.blocks(kind, outputs, INPUTS))


def head(loaded, parts: list[BlockMatrix], x: np.ndarray, *, split: bool = False) -> np.ndarray:
    layers = Layers(1, INPUTS, 64, 1, 1, 64, 1e-5, 2, library=loaded)
    layers.put_matrix(WHOLE_MODEL, "head", parts, split=split)
    return layers.head(x)


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@TYPES
def test_values_are_those_of_ggml(name):
    made = matrix(name)
    expected = gguf.quants.dequantize(made.rows, GGMLQuantizationType[name])
    assert made.shape == (OUTPUTS, INPUTS)
    assert np.array_equal(made.floats(), expected.reshape(made.shape))


@TYPES
@pytest.mark.parametrize("rows", [1, 3, 8, 11])
def test_a_product_is_that_of_the_values(loaded, name, rows):
    made, x = matrix(name), np.random.default_rng(rows).standard_normal((rows, INPUTS), np.float32) + 0.3
    assert error(head(loaded, [made], x), x @ made.floats().T) < TOLERANCE


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"])
def test_codes_are_laid_out_without_rounding(loaded, name):
    made = matrix(name)
    one_hot = np.eye(INPUTS, dtype=np.float32)[:: INPUTS // 64]  # 127 steps of 1 / 127: exact in 8 bits
    found, expected = head(loaded, [made], one_hot), one_hot @ made.floats().T
    assert np.abs(found - expected).max() < 2**-10 * np.abs(made.floats()).max()  # scales are float16


def test_floats_are_rounded_by_at_most_half_a_step(loaded):
    values = np.random.default_rng(0).normal(size=(5, INPUTS)).astype(np.float32) * np.logspace(-3, 4, 5)[:, None]
    values[0, :32], values[1, :32] = 0, 3.0
    groups = values.reshape(5, -1, 32)
    step = ((groups.max(-1) - groups.min(-1)) / 255).repeat(32, 1)
    found = head(loaded, [BlockMatrix.of_floats(values)], np.eye(INPUTS, dtype=np.float32))
    bound = 0.51 * step + 1e-3 * np.abs(values).max(1, keepdims=True) + 1e-7
    assert (np.abs(found.T - values) <= bound).all()


def test_bfloat16_is_rounded_as_torch_rounds_it():
    values = np.random.default_rng(0).integers(0, 0x7F7F0000, 10_000, np.uint32).view(np.float32)
    values = np.concatenate((values, -values, np.arange(0, 1 << 18, 1 << 13, np.uint32).view(np.float32)))
    assert np.array_equal(widened(rounded(values)), torch.from_numpy(values).bfloat16().float().numpy())


@pytest.mark.parametrize("other", ["Q8_0", "Q6_K", "F16", "Q5_K"])
@TYPES
def test_parts_of_different_types_make_one_matrix(loaded, name, other):
    parts, x = [matrix(name), matrix(other, 19)], np.random.default_rng(0).standard_normal((2, INPUTS), np.float32)
    expected = x @ np.concatenate([part.floats() for part in parts]).T
    assert error(head(loaded, parts, x), expected) < TOLERANCE


@pytest.mark.parametrize("name", ["Q8_0", "Q6_K", "F16", "BF16", "F32"])
@pytest.mark.parametrize("rows", [1, 5, 9])
def test_a_split_head_is_exact_near_the_largest_logit_and_coarse_elsewhere(loaded, name, rows):
    made, x = matrix(name, 1003), np.random.default_rng(rows).standard_normal((rows, INPUTS), np.float32)
    exact = head(loaded, [made], x)
    x *= 30 / exact.max()  # few are near
    exact, found = head(loaded, [made], x), head(loaded, [made], x, split=True)
    near = exact > exact.max(1, keepdims=True) - 4
    assert 0 < near.sum() < near.size / 2
    assert np.array_equal(found.argmax(1), exact.argmax(1))
    assert np.abs(found - exact)[near].max() < (0.01 if name == "Q8_0" else 0.4)  # others are rounded to eight bits
    assert error(found, exact) < 0.12  # like four bits


@TYPES
def test_a_split_head_of_few_bits_is_whole(loaded, name):
    made, x = matrix(name), np.random.default_rng(0).standard_normal((3, INPUTS), np.float32)
    if made.type.form & 15 > 5:
        pytest.skip("it is split")
    assert np.array_equal(head(loaded, [made], x, split=True), head(loaded, [made], x))


def test_only_types_that_share_a_form_keep_it():
    form = {name: form_of([matrix(name).type]) for name in ("Q4_0", "Q4_K", "Q5_0", "Q8_0", "Q6_K", "F16")}
    assert form_of([matrix("Q4_0").type, matrix("Q4_K").type]) == form["Q4_0"] == 4
    assert form_of([matrix("Q5_0").type, matrix("Q8_0").type]) == form["Q8_0"]
    assert form_of([matrix("Q4_K").type, matrix("Q6_K").type]) == form["F16"] == 8


@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0", "F16"])
def test_a_scale_that_is_not_finite_is_refused(loaded, name):
    made = matrix(name)
    rows = made.rows.copy()
    rows.reshape(OUTPUTS, -1, made.type.size)[3, 1, -2:] = rows.reshape(OUTPUTS, -1, made.type.size)[3, 1, :2] = 0xFF
    with pytest.raises(ValueError, match="not finite"):
        head(loaded, [BlockMatrix(made.type, rows)], np.zeros((1, INPUTS), np.float32))
