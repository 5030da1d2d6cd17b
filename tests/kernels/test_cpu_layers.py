"""The C kernels equal their torch twin, in every build that this processor runs and in plain C."""

from collections.abc import Sequence
from itertools import pairwise

import compile_kernels
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mercury_kernels.cpu import library
from mercury_kernels.cpu.blocks import GROUP, TYPES, BlockMatrix, Floats, widened
from mercury_kernels.cpu.layers import FIRST_ADAPTER, MATRICES, MAX_ADAPTERS, WHOLE_MODEL, Layers, Part
from mercury_kernels.reference import rotary_angles

from tests.support.reference_layers import ReferenceLayers, bits

pytestmark = pytest.mark.skipif(compile_kernels.compiler() is None, reason="no C compiler")

LAYERS, WIDTH, INNER, HEADS, GROUPS, HEAD_WIDTH, OUTPUTS = 2, 64, 96, 2, 3, 64, 77

SHAPES = {
    "qkv": ((HEADS * GROUPS + 2 * HEADS) * HEAD_WIDTH, WIDTH),
    "out": (WIDTH, HEADS * GROUPS * HEAD_WIDTH),
    "gate_up": (2 * INNER, WIDTH),
    "down": (WIDTH, INNER),
}

TOLERANCE = 0.05
"""Relative error of 8-bit activations."""


def normal(*shape: int) -> Floats:
    return torch.randn(*shape).numpy()


def causal(rows: int) -> Floats:
    """An additive mask [R,R] that hides later rows."""
    return np.triu(np.full((rows, rows), -np.inf, np.float32), 1)


def coded(outputs: int, inputs: int, kind: str = "Q4_1") -> BlockMatrix:
    """Random codes with scales, or floats."""
    type = next(each for each in TYPES.values() if each.name == kind)
    if type.weights == 1:
        return BlockMatrix.of_floats(normal(outputs, inputs) * inputs**-0.5)
    blocks = torch.randint(0, 256, (outputs, inputs // GROUP, type.size), dtype=torch.uint8).numpy()
    scales = (2.0 * inputs**-0.5 / 2 ** (type.form % 16) * (0.5 + torch.rand(*blocks.shape[:2], 1))).half().numpy()
    blocks[..., :2] = scales.view(np.uint8)
    if kind == "Q4_1":
        blocks[..., 2:4] = (scales * np.float16(-8)).view(np.uint8)
    return BlockMatrix(type, blocks.reshape(outputs, -1))


def made(
    loaded, threads: int = 1, kind: str = "Q4_1", rank: int = 0, biased: bool = False, wide: int = 0, factors=None
) -> tuple[Layers, ReferenceLayers]:
    """The same random network twice."""
    torch.manual_seed(0)
    shape = HEADS, GROUPS, HEAD_WIDTH, 1e-5
    layers = Layers(LAYERS, WIDTH, INNER, *shape, threads, wide=wide, factors=factors, library=loaded)
    twin = ReferenceLayers(LAYERS, *shape, factors)
    for layer in range(LAYERS):
        for which in MATRICES:
            outputs, inputs = SHAPES[which]
            parts = [coded(outputs - 32, inputs, kind), coded(32, inputs, kind)]
            products = [
                (0.1 * normal(rank, inputs), 0.1 * normal(outputs, rank)) for _ in range(FIRST_ADAPTER + MAX_ADAPTERS)
            ]
            for each in (layers, twin):
                each.put_matrix(layer, which, parts)
                for piece, product in enumerate(products if rank else []):
                    each.put_low_rank(layer, which, *product, piece)
        vectors = {"attention_norm": 1 + 0.1 * normal(WIDTH), "feed_norm": 1 + 0.1 * normal(WIDTH)}
        put_vectors((layers, twin), layer, vectors | ({"bias": normal(SHAPES["qkv"][0])} if biased else {}))
        if wide:
            layers.put_large(layer, np.stack([large_dimensions(layer, head, wide) for head in range(HEADS)]))
    put_vectors((layers, twin), WHOLE_MODEL, {"last_norm": np.ones(WIDTH, np.float32)})
    head = [coded(OUTPUTS, WIDTH, "Q8_0")]
    for each in (layers, twin):
        each.put_matrix(WHOLE_MODEL, "head", head)
    return layers, twin


def put_vectors(networks, layer: int, vectors: dict[str, Floats]) -> None:
    for each in networks:
        for name, values in vectors.items():
            each.put_vector(layer, name, values)


def large_dimensions(layer: int, head: int, wide: int) -> np.ndarray:
    """Pairs that rotate together, others for every head."""
    half = (np.arange(wide // 2) * 5 + 3 * layer + head) % (HEAD_WIDTH // 2)
    return np.concatenate((half, half + HEAD_WIDTH // 2))


def put_uneven_biases(both, wide: int) -> None:
    """Key biases twenty times as large as other numbers, in the large dimensions only."""
    first = HEADS * GROUPS
    for layer in range(LAYERS):
        by_head = np.zeros((SHAPES["qkv"][0] // HEAD_WIDTH, HEAD_WIDTH), np.float32)
        for head in range(HEADS):
            by_head[first + head, large_dimensions(layer, head, wide)] = 20 * normal(wide)
        put_vectors(both, layer, {"bias": by_head.ravel()})


def angles_of(places: Sequence[int]) -> tuple[Floats, Floats]:
    cos, sin = rotary_angles(torch.tensor(places), HEAD_WIDTH, 10_000.0)
    return cos.numpy(), torch.cat((-sin[:, : HEAD_WIDTH // 2], sin[:, HEAD_WIDTH // 2 :]), -1).numpy()


def angles(first: int, count: int) -> tuple[Floats, Floats]:
    return angles_of(range(first, first + count))


def side(first: int, tokens: int):
    """A function that places the same random side in either implementation."""
    keys, values = bits(normal(2, LAYERS, 1, HEADS, tokens, HEAD_WIDTH))
    return lambda layers: layers.place([(keys, values)], angles(first, tokens))


def ran(layers, x, near, away, hidden, before, after=()):
    """The result of `run` for a single part whose sides are placed first."""
    return layers.run(x, near, away, [part_of(layers, len(x), hidden, before, after)])


def part_of(layers, rows, hidden, before, after=()):
    return Part(rows, [place(layers) for place in before], [place(layers) for place in after], hidden)


def near(found: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> None:
    assert found.shape == expected.shape
    left, right = (widened(each) if each.dtype == np.uint16 else each for each in (found, expected))
    error = np.linalg.norm(left - right) / np.linalg.norm(right)
    assert error < tolerance, error


def test_every_build_for_this_processor_exists():
    assert library.built() == (library.suitable() or [None])[0]


@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0", "F32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9, 40])
def test_the_readers_rows_see_sides_of_any_length(loaded, rows, kind):
    layers, twin = made(loaded, kind=kind, rank=5, biased=True)
    before = [side(-70, 70), side(0, 33), side(33, 1)]
    given = normal(rows, WIDTH), angles(34, rows), None, causal(rows), before
    for found, expected in zip(ran(layers, *given), ran(twin, *given), strict=True):
        near(found, expected)


@pytest.mark.parametrize("adapter", range(MAX_ADAPTERS))
@pytest.mark.parametrize("rows", [1, 4, 17])
def test_an_adapter_changes_the_rows_of_its_own_passes(loaded, rows, adapter):
    layers, twin = made(loaded, rank=16)
    given = normal(rows, WIDTH), angles(40, rows), None

    def passed(each, chosen: int | None):
        return each.run(*given, [part_of(each, rows, causal(rows), [side(-9, 49)])], chosen)

    torch.manual_seed(1)
    found = passed(layers, adapter)
    torch.manual_seed(1)
    for one, expected in zip(found, passed(twin, adapter), strict=True):
        near(one, expected)
    torch.manual_seed(1)
    assert np.linalg.norm(found[0] - passed(layers, None)[0]) > 0.1


@pytest.mark.parametrize("rows", [1, 4, 17])
def test_the_writers_rows_see_the_suffix_in_its_own_frame(loaded, rows):
    layers, twin = made(loaded, rank=16)
    given = normal(rows, WIDTH), angles(40, rows), angles(-rows, rows), None, [side(-9, 49)], [side(0, 65)]
    for found, expected in zip(ran(layers, *given), ran(twin, *given), strict=True):
        near(found, expected)
    lookup_text = (*given[:2], angles(-rows - 50, rows), *given[3:])
    found, expected = ran(twin, *lookup_text)[0], ran(twin, *given)[0]
    assert np.linalg.norm(found - expected) > 1.5 * TOLERANCE * np.linalg.norm(expected)
    alone = given[0], given[1], None, *given[3:5]
    difference = ran(layers, *given)[0] - ran(layers, *alone)[0]
    assert np.linalg.norm(difference) > 0.1, "what the writer adds is not the reader's"


def test_rows_see_only_keys_that_are_not_hidden(loaded):
    layers, _ = made(loaded)
    x, apart = normal(5, WIDTH), np.full((5, 5), -np.inf, np.float32)
    apart[:3, :3] = apart[3:, 3:] = 0
    frame = angles_of([0, 1, 2, 0, 1])
    whole = ran(layers, x, frame, None, apart, [])[0]
    for rows in (slice(0, 3), slice(3, 5)):
        part = ran(layers, x[rows], (frame[0][rows], frame[1][rows]), None, None, [])[0]
        near(part, whole[rows], 1e-5)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_each_part_of_a_pass_has_the_same_result_as_alone(loaded, threads, writes):
    layers, twin = made(loaded, threads, rank=5)
    sizes, starts = [1, 9, 4, 1], [34, 0, 7, 0]
    sides = [[side(-70, 70), side(0, 34)], [side(-3, 3)], [side(0, 7)], []]
    behind = [[side(0, 65)], [], [side(0, 4), side(4, 2)], []] if writes else [[]] * 4
    masks = [None, causal(9), None, None]
    near_frames = [angles(start, size) for start, size in zip(starts, sizes, strict=True)]
    away_frames = [angles(-size, size) for size in sizes] if writes else [None] * 4
    x = [normal(size, WIDTH) for size in sizes]
    alone = [ran(layers, *given) for given in zip(x, near_frames, away_frames, masks, sides, behind, strict=True)]

    def whole(each):
        frames = [
            tuple(map(np.concatenate, zip(*of, strict=True))) if of[0] else None for of in (near_frames, away_frames)
        ]
        parts = [part_of(each, *given) for given in zip(sizes, masks, sides, behind, strict=True)]
        return each.run(np.concatenate(x), *frames, parts)

    for found, expected, dim in zip(whole(layers), zip(*alone, strict=True), (0, 3, 3), strict=True):
        assert np.array_equal(found, np.concatenate(expected, dim))
    for found, expected in zip(whole(layers), whole(twin), strict=True):
        near(found, expected)


@pytest.mark.parametrize("wide", [0, 16])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", [[1] * 9, [4, 1, 9], [8, 8], [70, 1, 60], [1, 130]])
def test_rows_are_the_same_to_the_bit_however_they_are_divided_among_passes(loaded, sizes, threads, wide):
    layers, _ = made(loaded, threads, rank=16, biased=True, wide=wide)
    far = side(-90, 90)(layers)
    x, total = normal(sum(sizes), WIDTH), sum(sizes)
    at_once = layers.run(x, angles(0, total), None, [Part(total, [far], mask_RR=causal(total))])
    before, first = [far], 0
    for count in sizes:
        frame = angles(first, count)
        read = layers.run(x[first : first + count], frame, None, [Part(count, before, mask_RR=causal(count))])
        for found, expected, axis in zip(read, at_once, (0, 3, 3), strict=True):
            assert np.array_equal(found, np.take(expected, range(first, first + count), axis))
        before.append(layers.place([read[1:]], frame))
        first += count


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_change_only_the_order_of_sums(loaded, threads):
    one, many = made(loaded)[0], made(loaded, threads)[0]
    given = normal(7, WIDTH), angles(0, 7), None, causal(7), [side(-90, 90)]
    for left, right in zip(ran(one, *given), ran(many, *given), strict=True):
        near(left, right, 0.005)
    near(one.head(given[0]), many.head(given[0]), 1e-6)
    assert np.array_equal(ran(many, *given)[0], ran(many, *given)[0]), "the same question has the same answer"


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 8, 40])
@pytest.mark.parametrize("wide", [16, 48])
def test_large_dimensions_of_keys_leave_the_others_their_eight_bits(loaded, rows, wide, kept):
    blocks = [tuple(bits(normal(2, LAYERS, 1, HEADS, tokens, HEAD_WIDTH))) for tokens in (70, 33, 1)]

    def placed(each, start):
        return each.place([each.keep(*block) for block in blocks] if kept else blocks, angles(start, 104))

    sides = [lambda each: placed(each, -104)], [lambda each: placed(each, 0)]
    given = normal(rows, WIDTH), angles(0, rows), angles(-rows, rows), causal(rows), *sides
    layers, twin = made(loaded, rank=16, wide=wide)
    put_uneven_biases((layers, twin), wide)
    for found, expected in zip(ran(layers, *given), ran(twin, *given), strict=True):
        near(found, expected)


@pytest.mark.parametrize("tokens", [1, 40])
def test_large_dimensions_are_stored_as_they_are(loaded, tokens):
    wide = 16
    layers, twin = made(loaded, wide=wide)
    put_uneven_biases((layers, twin), wide)
    place = side(-7, tokens)
    found, expected = place(layers)[0], place(twin)[0]
    floats_behind = scales(found)
    assert floats_behind.shape[4] == 1 + wide
    for layer in range(LAYERS):
        for head in range(HEADS):
            chosen = large_dimensions(layer, head, wide)
            np.testing.assert_allclose(
                floats_behind[layer, 0, head, :, 1:], expected[layer, 0, head][:, chosen], rtol=1e-4, atol=1e-5
            )
            assert (signed_keys(found)[layer, 0, head][:, chosen] == 0).all()
    plain = made(loaded)[0]
    put_uneven_biases((plain,), wide)
    assert (floats_behind[..., :1] * 5 < scales(place(plain)[0])).all(), "eight bits for all dimensions are coarse"


@pytest.mark.parametrize("rows", [1, 9])
def test_norms_of_queries_and_keys_come_before_the_rotation(loaded, rows):
    layers, twin = made(loaded)
    given = normal(rows, WIDTH), angles(3, rows), None, [Part(rows, [])]
    plain_keys = widened(twin.run(*given)[1])
    for layer in range(LAYERS):
        norms = 1 + 0.5 * normal(2, HEAD_WIDTH)
        put_vectors((layers, twin), layer, {"query_norm": norms[0], "key_norm": norms[1]})
    for found, expected in zip(layers.run(*given), twin.run(*given), strict=True):
        near(found, expected)
    difference = widened(twin.run(*given)[1]) - plain_keys
    assert np.linalg.norm(difference) > 0.1 * np.linalg.norm(plain_keys)


@pytest.mark.parametrize("factors", [(0.01, 0.22, 0.125), (0.5, 1.5, 3.0)])
def test_factors_scale_scores_residuals_and_logits(loaded, factors):
    plain = made(loaded)[1]
    layers, twin = made(loaded, factors=factors)
    given = normal(7, WIDTH), angles(0, 7), None, None, [side(-90, 90)]
    for found, expected in zip(ran(layers, *given), ran(twin, *given), strict=True):
        near(found, expected)
    near(layers.head(given[0]), twin.head(given[0]))
    near(twin.head(given[0]), factors[2] * plain.head(given[0]), 1e-5)
    found, expected = ran(twin, *given)[0], ran(plain, *given)[0]
    assert np.linalg.norm(found - expected) > 2 * TOLERANCE * np.linalg.norm(expected)


@pytest.mark.parametrize("rows", [1, 6, 30])
def test_the_head_of_any_number_of_outputs(loaded, rows):
    layers, twin = made(loaded)
    x = normal(rows, WIDTH)
    near(layers.head(x), twin.head(x))


def test_a_part_of_a_side_is_read_in_place(loaded):
    layers, twin = made(loaded)
    whole = side(0, 50)

    def part(layers):
        return tuple(each[:, :, :, :20] for each in whole(layers))

    given = normal(2, WIDTH), angles(20, 2), None, None, [part]
    near(ran(layers, *given)[0], ran(twin, *given)[0])


@pytest.mark.parametrize("tokens", [1, 40])
def test_placing_stored_blocks_rounds_keys_again_but_not_values(loaded, tokens):
    layers, _ = made(loaded)
    given, turned = bits(normal(2, LAYERS, 1, HEADS, tokens + 1, HEAD_WIDTH)), angles(-7, tokens)
    at_once = layers.place([tuple(given[..., 1:, :])], turned)
    later = layers.place([tuple(each[..., 1:, :] for each in layers.keep(*given))], turned)
    assert np.array_equal(at_once[1], later[1])
    first, second = (signed_keys(each[0]) * scales(each[0]) for each in (at_once, later))
    assert (np.abs(first - second) <= 2.2 * scales(at_once[0])).all()


@pytest.mark.parametrize("kept", [False, True])
def test_several_blocks_are_placed_like_one(loaded, kept):
    layers, _ = made(loaded)
    whole = tuple(bits(normal(2, LAYERS, 1, HEADS, 40, HEAD_WIDTH)))
    blocks = [tuple(each[:, :, :, part] for each in whole) for part in (slice(0, 7), slice(7, 8), slice(8, 40))]
    if kept:
        whole, blocks = layers.keep(*whole), [layers.keep(*block) for block in blocks]
    turned = angles(-40, 40)
    for found, expected in zip(layers.place(blocks, turned), layers.place([whole], turned), strict=True):
        assert np.array_equal(found, expected)


def scales(kept):
    return np.ascontiguousarray(kept[..., HEAD_WIDTH:]).view(np.float32)


def signed_keys(kept):
    return kept[..., :HEAD_WIDTH].view(np.uint8).astype(np.int16) - 128


@pytest.mark.parametrize("tokens", [1, 40])
def test_a_placed_side_is_off_by_at_most_half_a_step(loaded, tokens):
    layers, twin = made(loaded)
    place = side(-7, tokens)
    for kept, expected, offset in zip(place(layers), place(twin), (-128, 0), strict=True):
        codes = kept[..., :HEAD_WIDTH].view(np.uint8).astype(np.int16)
        signed = codes + offset if offset else kept[..., :HEAD_WIDTH]
        scale = scales(kept)
        assert (scale[..., 0] * 127 - np.abs(expected).max(-1) < 1e-5).all()
        assert (np.abs(signed * scale - expected) <= 0.51 * scale).all()


def test_inputs_and_earlier_results_stay_unchanged(loaded):
    layers, _ = made(loaded)
    x = normal(3, WIDTH)
    kept = x.copy()
    first = ran(layers, x, angles(0, 3), None, None, [])
    copies = [each.copy() for each in first]
    ran(layers, normal(9, WIDTH), angles(0, 9), None, None, [])
    assert np.array_equal(x, kept)
    assert all(np.array_equal(a, b) for a, b in zip(first, copies, strict=True))


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e30, float("nan"), float("inf")])
def test_nan_and_infinity_leave_the_process_and_the_layers_usable(loaded, value):
    layers, twin = made(loaded)
    ran(layers, np.full((2, WIDTH), value, np.float32), angles(0, 2), None, None, [side(-4, 4)])
    given = normal(2, WIDTH), angles(0, 2), None, None, []
    near(ran(layers, *given)[0], ran(twin, *given)[0])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", [0, 37])
def test_nan_and_infinity_become_nan(loaded, place, bad):
    layers, _ = made(loaded)
    x = normal(3, WIDTH)
    x[1, place] = bad
    assert np.isnan(layers.head(x)[1]).all()
    assert np.isnan(ran(layers, x, angles(0, 3), None, None, [])[0]).all(), "rows see each other"


def test_sides_with_other_strides_are_copied_first(loaded):
    layers, twin = made(loaded)
    whole = side(0, 3000)

    def part(each):
        keys, values = whole(each)
        return keys[:, :, :, :2500], np.ascontiguousarray(values[:, :, :, :2500])

    given = normal(1, WIDTH), angles(2500, 1), None, None, [part]
    for _ in range(4):
        near(ran(layers, *given)[0], ran(twin, *given)[0])


def test_an_incomplete_network_does_not_run(loaded):
    layers = Layers(1, WIDTH, INNER, HEADS, GROUPS, HEAD_WIDTH, 1e-5, 1, library=loaded)
    with pytest.raises(MemoryError):
        ran(layers, normal(1, WIDTH), angles(0, 1), None, None, [])
    with pytest.raises(MemoryError):
        layers.head(normal(1, WIDTH))
    with pytest.raises(ValueError, match="out has shape"):
        layers.put_matrix(0, "out", [coded(WIDTH, WIDTH)])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_a_matrix_may_come_in_parts_of_any_size(sizes):
    """With the best library only: the layout code is the same in every build."""
    if library.built() is None:
        pytest.skip("not built")
    layers = Layers(1, WIDTH, INNER, 1, 1, HEAD_WIDTH, 1e-5, 1)
    parts = [coded(size, WIDTH, "Q8_0") for size in sizes]
    layers.put_matrix(WHOLE_MODEL, "head", parts)
    x = normal(2, WIDTH)
    near(layers.head(x), x @ np.concatenate([part.floats() for part in parts]).T)
    ends = [0, *np.cumsum(sizes)]
    assert all(np.abs(layers.head(x)[:, a:b]).sum() > 0 for a, b in pairwise(ends))


@pytest.mark.parametrize("change", [{"width": 48}, {"inner": 50}, {"head_width": 24}])
def test_an_unsupported_shape_is_refused(change):
    if library.built() is None:
        pytest.skip("not built")
    shape = {
        "layers": 1,
        "width": 64,
        "inner": 64,
        "heads": 1,
        "groups": 1,
        "head_width": 64,
        "eps": 1e-5,
        "threads": 1,
    }
    with pytest.raises(ValueError, match="the kernels cannot run width"):
        Layers(**shape | change)
