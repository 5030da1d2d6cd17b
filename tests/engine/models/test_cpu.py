"""CpuNetwork computes what TorchNetwork does, within the error of eight bits."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from mercury_engine import loading
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.errors import ModelCorrupt, RequestError
from mercury_engine.model_folders import BUNDLED_MODEL
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.arrays import Array, on_host
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, Network
from mercury_engine.models.row_answers import RowQuestion
from mercury_engine.models.tensors import StoredTensors
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_kernels.cpu.blocks import widened
from mercury_lab.engine import Engine
from mercury_lab.training.conversion.adapter_file import packed as packed_factors
from safetensors import numpy as numpy_files
from safetensors.torch import load_file, save_file

from tests.support import asking, tiny

pytestmark = tiny.needs_kernels

IDS = np.array([1, 5, 9, 33, 21])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("native"), **tiny.WIDE)


@pytest.fixture(scope="module")
def plain(folder) -> TorchNetwork:
    return in_torch(folder)


@pytest.fixture(scope="module")
def native(folder) -> CpuNetwork:
    return loaded(folder)


def denoised(network: Network, ids, before, after, end, runs=()) -> Array:
    """Hidden states of a canvas's rows."""
    return network.read_together([ForwardRequest(ids, before, end, runs, block=None, after=after)])[0][0]


def loaded(folder) -> CpuNetwork:
    config = weights.read_config(folder)
    return CpuNetwork(folder, config, layers_for(config, 1))


def in_torch(folder) -> TorchNetwork:
    """The folder's reader and writer as one network in float32."""
    return TorchNetwork(decoder_weights.load(folder, torch.float32, torch.device("cpu")))


def read(network: Network, past=(), start=0, ids=IDS) -> tuple[Array, KeyValueBlock]:
    [read] = network.read_together([ForwardRequest(ids, past, start)])
    return read


def close(found: Array, expected: Array) -> None:
    """The mean error of eight bits in a random network, which damps no error, is below a tenth."""
    assert found.shape == expected.shape
    found, expected = (on_host(each) for each in (found, expected))
    found = widened(found) if found.dtype == np.uint16 else found
    norm = np.linalg.norm
    assert norm(found - expected) < 0.1 * norm(expected), norm(found - expected) / norm(expected)


@pytest.mark.parametrize("sides", [0, 1, 2, 3])
def test_reading_behind_any_number_of_sides_gives_the_same_states_and_block(plain, native, sides):
    _, block = read(plain)
    expected, expected_block = read(plain, [plain.rotated(block, start) for start in (-5, 0, 5)[:sides]], 3)
    _, block = read(native)
    hidden, found = read(native, [native.rotated(block, start) for start in (-5, 0, 5)[:sides]], 3)
    close(hidden, expected)
    close(found.keys, expected_block.keys)
    close(found.values, expected_block.values)
    close(native.log_probabilities(hidden), plain.log_probabilities(expected))


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("before", [1, 2])
def test_writing_gives_the_same_states(plain, native, before, behind):
    canvas = np.array([7, *[plain.config.mask_id] * 6])

    def written(network: Network, end: int) -> Array:
        _, block = read(network)
        sides = [network.rotated(block, start) for start in (-5, 0)[:before]]
        return denoised(network, canvas, sides, [network.rotated(block, 0)] * behind, end)

    expected, found = written(plain, 4), written(native, 4)
    close(found, expected)
    asked = asking.everything(7, plain.config.vocab_size + 2)
    logp, expected_logp = (
        torch.as_tensor(asking.logp(told))
        for [told] in (native.answers(found, [asked], True), plain.answers(expected, [asked], True))
    )
    assert logp[:, plain.config.mask_id].isneginf().all()
    shown = [i for i in range(plain.config.vocab_size + 2) if i != plain.config.mask_id]
    close(logp[:, shown], expected_logp[:, shown])
    elsewhere = written(plain, 40)
    assert (elsewhere - expected).norm() > 0.2 * expected.norm(), "a wrong frame would show"


@pytest.mark.parametrize("draws", [False, True])
def test_only_rows_whose_answers_matter_pass_the_head(native, monkeypatch, draws):
    hidden_WC = np.random.default_rng(0).standard_normal((17, native.config.hidden_size)).astype(np.float32)
    open_W = np.arange(17) % 3 == 0
    question = RowQuestion.of([None] * 17, native.config.vocab_size + 2, draws, asked=[1, 2])
    head, rows = native._stack.head, list[int]()
    [whole] = native.answers(hidden_WC, [question], True)
    monkeypatch.setattr(native._stack, "head", lambda hidden, out: rows.append(len(hidden)) or head(hidden, out))
    parts = [replace(question, open_W=open_W), replace(question, open_W=~open_W)]
    told, others = native.answers(np.concatenate((hidden_WC, hidden_WC)), parts, True)
    assert rows == [17]
    for each in fields(told):
        found, rest, expected = (getattr(answers, each.name) for answers in (told, others, whole))
        assert np.array_equal(found[open_W], expected[open_W])
        assert np.array_equal(rest[~open_W], expected[~open_W])


def test_runs_side_by_side_are_read_as_if_alone_to_the_bit(native):
    _, block = read(native)
    past, run = [native.rotated(block, 0)], [7, 11, 13]
    [(alone, kept)] = native.read_together([ForwardRequest(np.array(run), past, 5)])
    forward = ForwardRequest(np.array(run * 4), past, 5, [len(run)] * 4)
    for hidden, found in native.read_together([forward]):
        assert np.array_equal(hidden, np.concatenate([alone] * 4))
        assert np.array_equal(found.keys, np.concatenate([kept.keys] * 4, 3))


def test_canvases_packed_side_by_side_do_not_see_each_other(native):
    mask = native.config.mask_id
    _, block = read(native)
    sides = [native.rotated(block, 0)], [native.rotated(block, 0)]
    canvases = [[7, mask, mask], [7, mask]]
    both = denoised(native, np.concatenate(canvases), *sides, 4, [*map(len, canvases)])
    for found, canvas in zip(np.split(both, [3]), canvases, strict=True):
        assert np.array_equal(found, denoised(native, np.array(canvas), *sides, 4))


def test_an_untied_head(tmp_path):
    path = tiny.folder(tmp_path, **tiny.WIDE, tie_word_embeddings=False)
    state = load_file(path / "model.safetensors")
    torch.manual_seed(3)
    state["lm_head.weight"] = torch.randn_like(state["model.embed_tokens.weight"])
    save_file(state, path / "model.safetensors")
    plain, native = in_torch(path), loaded(path)
    (expected, _), (found, _) = read(plain), read(native)
    close(found, expected)
    close(native.log_probabilities(found), plain.log_probabilities(expected))


FAMILIES = {
    "qwen2": {"attention_bias": True},
    "qwen3": {"qk_norm": True},
    "granite": {
        "num_attention_heads": 5,
        "num_key_value_heads": 1,
        "embedding_multiplier": 12.0,
        "attention_multiplier": 0.015625,
        "residual_multiplier": 0.22,
        "logits_scaling": 10.0,
    },
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_reads_and_writes_as_in_torch(tmp_path, family):
    path = tiny.folder(tmp_path, **tiny.WIDE, **FAMILIES[family])
    plain, native = in_torch(path), loaded(path)

    def read_on(network: Network) -> tuple[Array, KeyValueBlock]:
        _, block = read(network)
        return read(network, [network.rotated(network.kept(block), -5), network.rotated(block, 0)], 5)

    (expected, _), (found, _) = read_on(plain), read_on(native)
    close(found, expected)
    close(native.log_probabilities(found), plain.log_probabilities(expected))
    if family != "granite":  # no Granite has an adapter that denoises
        canvas = np.array([7, *[plain.config.mask_id] * 6])
        close(denoised(native, canvas, [], [], 4), denoised(plain, canvas, [], [], 4))


def test_keys_with_uneven_biases_read_as_in_torch(tmp_path):
    """Biases of Qwen2: a few dimensions are a hundred times as large as the others."""
    path = tiny.folder(tmp_path, seed=1, **tiny.WIDE, attention_bias=True)
    state = load_file(path / "model.safetensors")
    for number in range(2):
        by_head = state[f"model.layers.{number}.self_attn.k_proj.bias"].view(2, 64)
        for head, pairs in enumerate(((31, 30, 24), (3, 17, 29))):
            by_head[head, list(pairs)] = by_head[head, [pair + 32 for pair in pairs]] = 40.0
    save_file(state, path / "model.safetensors")
    plain, native = in_torch(path), loaded(path)
    ids = np.arange(5, 105)

    def read_on(network: Network) -> Array:
        _, block = read(network, ids=ids)
        return read(network, [network.rotated(network.kept(block), 0)], 100)[0]

    close(read_on(native), read_on(plain))


def packed(folder, kind: str, damage=None):
    """The folder with every matrix packed like the bundled model's."""
    state = load_file(folder / "model.safetensors")
    out = {}
    for name, weight in state.items():
        if weight.ndim == 1:
            out[name] = weight
            continue
        groups = weight.unflatten(1, (-1, 32))
        if kind == "q4" and "embed" not in name:
            low = groups.amin(-1, keepdim=True)
            scale = (groups.amax(-1, keepdim=True) - low) / 15
            codes = ((groups - low) / scale).round().clamp(0, 15).to(torch.uint8)
            out[f"{name}.q4"] = (codes[..., :16] | codes[..., 16:] << 4).flatten(1)
            out[f"{name}.low"] = low[..., 0].half()
        else:
            scale = groups.abs().amax(-1, keepdim=True) / 127
            out[f"{name}.q8"] = (groups / scale).round().to(torch.int8).flatten(1)
        out[f"{name}.scale"] = scale[..., 0].half()
    if damage:
        damage(out)
    save_file({name: tensor.contiguous() for name, tensor in out.items()}, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("kind", ["q4", "q8"])
@pytest.mark.parametrize("changed", [False, True])
def test_packed_weights_are_taken_as_they_are_stored(tmp_path, kind, changed):
    path = packed(tiny.folder(tmp_path, **tiny.WIDE), kind)
    if changed:
        change = {
            name: t.bfloat16() / 2 for name, t in load_file(path / "adapter.safetensors").items() if "layers" in name
        }
        save_file(change, path / weights.READER_FILE)
    plain, native = in_torch(path), loaded(path)
    close(read(native)[0], read(plain)[0])
    close(denoised(native, IDS, [], [], 0), denoised(plain, IDS, [], [], 0))


def lose(name):
    return lambda state: state.pop(name)


def spoil(name):
    return lambda state: state[name].view(-1)[:1].fill_(float("nan"))


def misshape(name):
    return lambda state: state.update({name: state[name][:-32]})


def narrow(name):
    return lambda state: state.update({name: state[name][:, :-15]})


Q = "model.layers.1.self_attn.q_proj.weight"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lose(f"{Q}.scale"), "q_proj"),
        (lose(f"{Q}.low"), "q_proj"),
        (lose(f"{Q}.q4"), "q_proj"),
        (misshape(f"{Q}.q4"), "q_proj"),
        (narrow(f"{Q}.q4"), "q_proj"),
        (misshape(f"{Q}.scale"), "q_proj"),
        (spoil(f"{Q}.scale"), "not finite"),
        (spoil(f"{Q}.low"), "not finite"),
        (spoil("model.layers.0.input_layernorm.weight"), "not finite"),
        (lose("model.norm.weight"), "model.norm"),
        (lose("model.embed_tokens.weight.scale"), "embed_tokens"),
    ],
)
def test_damaged_files_are_reported_with_the_fix(tmp_path, damage, said):
    path = packed(tiny.folder(tmp_path, **tiny.WIDE), "q4", damage)
    with pytest.raises(ModelCorrupt, match=said) as error:
        loaded(path)
    assert any(fix in str(error.value) for fix in ("again", "belong together"))


def test_the_adapter_that_denoises_may_be_packed(tmp_path):
    path = tiny.folder(tmp_path, **tiny.WIDE)
    file = path / "adapter.safetensors"
    stored = {name: tensor.float().numpy() for name, tensor in load_file(file).items()}
    numpy_files.save_file(packed_factors(stored), file)
    read = StoredTensors(path, file.name)
    assert read.names.keys() == stored.keys()
    for name, tensor in stored.items():
        assert np.abs(read.matrix(name).floats() - tensor).max() <= np.abs(tensor).max() / 250, name
    assert loaded(path).config.adapter_rank


def test_a_damaged_adapter_is_reported(tmp_path):
    path = tiny.folder(tmp_path, **tiny.WIDE)
    adapter = load_file(path / "adapter.safetensors")
    save_file({name: t for name, t in adapter.items() if name != "layers.1.down.up"}, path / "adapter.safetensors")
    with pytest.raises(ModelCorrupt, match=r"layers\.1\.down"):
        loaded(path)


def test_torch_takes_over_with_a_warning_where_the_kernels_cannot_run(tmp_path, caplog):
    path = tiny.folder(tmp_path)  # of a shape the kernels do not support
    engine = Engine.load(path, device="cpu", threads=1)
    assert type(engine.reader) is TorchNetwork
    assert "torch runs the model" in caplog.text
    with pytest.raises(RequestError, match="'auto'"):
        Engine.load(path, device="cpu", backend="native")


def test_threads_are_half_the_processors_unless_set(folder, monkeypatch):
    seen = []

    def network(folder, config, threads, wished):
        seen.append(threads)
        return loaded(folder)

    monkeypatch.setattr(loading, "_native", network)
    for processors, threads in ((1, None), (2, None), (12, None), (64, None), (64, 20)):
        monkeypatch.setattr(loading.os, "cpu_count", lambda count=processors: count)
        Engine.load(folder, device="cpu", threads=threads)
    assert seen == [1, 1, 6, 8, 20]


@pytest.mark.slow
def test_the_bundled_model_reads_as_well_as_in_float32():
    plain, native = in_torch(BUNDLED_MODEL), loaded(BUNDLED_MODEL)
    ids = np.array(Tokenizer(BUNDLED_MODEL).encode(tiny.SAMPLE)[:256])

    def nats(network: Network) -> float:
        logp = on_host(network.log_probabilities(read(network, ids=ids)[0]))
        return -float(np.take_along_axis(logp[:-1], ids[1:, None], 1).mean())

    assert abs(nats(native) - nats(plain)) < 0.02
    assert native.config.kind == "causal"


def test_cached_blocks_take_one_byte_per_dimension_and_a_scale(folder):
    engine = Engine.load(folder, device="cpu", backend="native")
    engine.fill(FillRequest(near="x = ", far=("def add(a, b):\n    return a + b\n",), max_slots=2))
    config, tokens = engine.reader.config, len(engine.tokenizer.encode("def add(a, b):\n    return a + b\n"))
    assert engine.cache._blocks.total == 2 * tokens * config.num_hidden_layers * config.num_key_value_heads * (
        config.head_dim + 4
    )
