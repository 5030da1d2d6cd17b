"""Damaged models, some 400 of 2,000: each loads and fills, or is refused in one line. None ends the process."""

import json
import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import pytest
import tokenizers
from mercury_engine.api import FillRequest
from mercury_engine.errors import MercuryError, ModelCorrupt, ModelError
from mercury_engine.models import limits
from mercury_engine.prompt import tokenizer_file
from mercury_lab.engine import Engine

from tests.support import damaged_models, tiny

pytestmark = tiny.needs_kernels

SAMPLE = 70

Make = Callable[[Path], Iterator[tuple[str, Callable[[], Path]]]]
"""Makes damaged models in a folder: what is wrong with each, and a function that writes it."""


def write(path: Path, content: bytes | str) -> Path:
    """Write a file; the model that it is, or is a part of."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path if path.suffix == ".gguf" else path.parent


def gguf_bytes(tmp: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    data = damaged_models.native_gguf(tmp / "whole.gguf").read_bytes()
    header = gguf.GGUFReader(tmp / "whole.gguf").data_offset
    for what, change in damaged_models.in_bytes(data, header, 0, 40):
        yield what, lambda change=change: write(tmp / "x.gguf", change(data))


def gguf_tensors(tmp: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    data = damaged_models.native_gguf(tmp / "whole.gguf").read_bytes()
    for what, change in damaged_models.tensor_infos(data):
        yield what, lambda change=change: write(tmp / "x.gguf", change(data))


def gguf_metadata(tmp: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    whole = damaged_models.native_gguf(tmp / "whole.gguf")
    for what, changes in damaged_models.metadata(whole):
        yield what, lambda changes=changes: damaged_models.rewritten(whole, tmp / "x.gguf", changes)


def safetensors_files(tmp: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    file = damaged_models.folder(tmp / "x") / "model.safetensors"
    data = file.read_bytes()
    end = 8 + struct.unpack_from("<Q", data)[0]
    for what, header in damaged_models.safetensors_headers(json.loads(data[8:end])):
        yield what, lambda header=header: write(file, header + data[end:])
    for what, change in damaged_models.in_bytes(data, end, 1, 20):
        yield what, lambda change=change: write(file, change(data))


def configurations(tmp: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    file = damaged_models.folder(tmp / "x") / "config.json"
    for what, text in damaged_models.configurations(json.loads(file.read_text())):
        yield what, lambda text=text: write(file, text)


def tokenizer_files(tmp: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    file = damaged_models.folder(tmp / "x") / "tokenizer.json"
    for what, text in damaged_models.tokenizers(json.loads(file.read_text())):
        yield what, lambda text=text: write(file, text)


@pytest.mark.parametrize(
    "make", [gguf_bytes, gguf_tensors, gguf_metadata, safetensors_files, configurations, tokenizer_files]
)
def test_a_damaged_model_is_refused_in_one_line_or_fills(tmp_path: Path, make: Make):
    made = list(make(tmp_path))
    assert len(made) > SAMPLE
    refused = 0
    for what, damaged in random.Random(0).sample(made, SAMPLE):
        try:
            engine = Engine.load(damaged(), device="cpu", threads=1)
            engine.fill(FillRequest(near="def f(x):\n    return ", suffix=("\n",)))
        except MercuryError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 600, what
        except BaseException as error:
            raise AssertionError(f"{what}: {error!r}") from error
    assert refused > SAMPLE // 3


def test_a_panic_of_the_tokenizers_library_is_an_error_of_the_model(tmp_path: Path):
    raw = json.loads(tiny.tokenizer().to_str())
    raw["model"]["continuing_subword_prefix"] = "word"
    with pytest.raises(ModelCorrupt, match="the tokenizer of .* is damaged"):
        tokenizer_file.built(lambda: tokenizers.Tokenizer.from_str(json.dumps(raw)), tmp_path)


@pytest.mark.parametrize("prefix", ["word", "4"])
def test_a_tokenizer_at_which_the_library_aborts_the_process_is_not_given_to_it(tmp_path: Path, prefix: str):
    file = damaged_models.folder(tmp_path) / "tokenizer.json"
    raw = json.loads(file.read_text())
    raw["model"]["continuing_subword_prefix"] = prefix
    file.write_text(json.dumps(raw))
    with pytest.raises(ModelCorrupt, match="continuing_subword_prefix"):
        Engine.load(tmp_path, device="cpu", threads=1)


def test_tokens_beyond_the_vocabulary_are_refused_before_the_first_fill(tmp_path: Path):
    file = damaged_models.folder(tmp_path) / "tokenizer.json"
    raw = json.loads(file.read_text())
    vocabulary = raw["model"]["vocab"]
    vocabulary[list(vocabulary)[-1]] = 10_000  # as many tokens as before
    file.write_text(json.dumps(raw))
    with pytest.raises(ModelCorrupt, match="tokens up to number 10,000, the weights have 500 rows"):
        Engine.load(tmp_path, device="cpu", threads=1)


def test_a_sparse_file_is_refused_by_its_size(tmp_path: Path):
    folder = damaged_models.folder(tmp_path)
    os.truncate(folder / "model.safetensors", 32 * 10**9)
    with pytest.raises(ModelCorrupt, match="32,000,000,000 bytes"):
        Engine.load(folder, device="cpu", threads=1)


def test_a_sparse_file_of_the_size_that_its_configuration_describes_needs_that_memory(tmp_path: Path, monkeypatch):
    folder = damaged_models.folder(tmp_path)
    monkeypatch.setattr(limits, "available_bytes", lambda: 1000)
    with pytest.raises(ModelError, match=r"model.safetensors needs .* GB are left; close other programs"):
        Engine.load(folder, device="cpu", threads=1)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "settings.json", "model.safetensors.index.json"])
def test_a_sparse_json_file_is_not_read(tmp_path: Path, name: str):
    folder = damaged_models.folder(tmp_path)
    (folder / name).touch()
    os.truncate(folder / name, 32 * 10**9)
    with pytest.raises(ModelCorrupt, match=r"32,000,000,000 bytes, no known model"):
        Engine.load(folder, device="cpu", threads=1)


def test_a_sparse_gguf_file_is_refused_by_its_size(tmp_path: Path):
    file = damaged_models.native_gguf(tmp_path / "x.gguf")
    os.truncate(file, 32 * 10**9)
    with pytest.raises(ModelCorrupt, match="32,000,000,000 bytes"):
        Engine.load(file, device="cpu", threads=1)
