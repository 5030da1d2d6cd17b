"""Damaged models: tiny GGUF files and folders, each broken in one way, the same ones in every run."""

import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf

from tests.support import tiny, tiny_gguf

Damage = tuple[str, Callable[[bytes], bytes]]
"""What is wrong, and what makes a file so."""

NUMBERS = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 10**9, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
"""Values of counts, sizes and offsets that a reader may stumble over."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 3, 10**9, 10**30, 0.5, float("nan"), float("inf"), 1e-40),
    *("", "word", "4", [], [4], [[4]], {}, {"a": 1}),
)
"""Values of another type or size than a field has."""

DEEP = "[" * 100_000 + "]" * 100_000


def in_bytes(data: bytes, header: int, seed: int, count: int) -> Iterator[Damage]:
    """Files that were cut off, and flips, numbers and noise in the first `header` bytes."""
    rng = random.Random(seed)
    for at in (0, 1, 3, 4, 8, 16, 23, 24, 25, header - 1, header, header + 1, len(data) - 1):
        yield f"cut at {at}", lambda data, at=at: data[:at]
    for _ in range(count):
        at = rng.randrange(len(data))
        yield f"cut at {at}", lambda data, at=at: data[:at]
        at, bit = rng.randrange(header), rng.randrange(8)
        yield f"bit {bit} of byte {at}", lambda data, at=at, bit=bit: replaced(data, at, bytes([data[at] ^ 1 << bit]))
        at, number = rng.randrange(header - 8), rng.choice(NUMBERS)
        yield f"{number} at {at}", lambda data, at=at, number=number: replaced(data, at, struct.pack("<Q", number))
        at, noise = rng.randrange(header - 32), rng.randbytes(32)
        yield f"noise at {at}", lambda data, at=at, noise=noise: replaced(data, at, noise)


def replaced(data: bytes, at: int, new: bytes) -> bytes:
    """The data with other bytes at a place."""
    return data[:at] + new + data[at + len(new) :]


def tensor_infos(data: bytes) -> Iterator[Damage]:
    """Each number of the descriptions of two tensors replaced, and a tensor that has another one's name."""
    for name in (b"token_embd.weight", b"blk.0.attn_q.weight", b"blk.0.attn_norm.weight", b"output_norm.weight"):
        start = data.index(struct.pack("<Q", len(name)) + name)
        dimensions = start + 8 + len(name)
        count = struct.unpack_from("<I", data, dimensions)[0]
        sizes = [dimensions + 4 + 8 * number for number in range(count)]
        kind = sizes[-1] + 8
        for number in NUMBERS:
            for at in (start, *sizes, kind + 4):
                yield (
                    f"{number} at {at} of {name!r}",
                    lambda data, at=at, number=number: replaced(data, at, struct.pack("<Q", number)),
                )
        for number in (0, 1, 5, 9, 30, 99, 2**31, 2**32 - 1):
            for at in (dimensions, kind):
                yield (
                    f"{number} at {at} of {name!r}",
                    lambda data, at=at, number=number: replaced(data, at, struct.pack("<I", number)),
                )
    yield "two tensors of one name", lambda data: data.replace(b"blk.0.attn_k.weight", b"blk.0.attn_v.weight")
    yield "a name that is no text", lambda data: data.replace(b"blk.0.attn_k.weight", b"\xff\xfe.0.attn_k.weight")


def safetensors_headers(header: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """What may be wrong with the header of a safetensors file, as the bytes in front of the tensors."""
    names = [name for name in header if name != "__metadata__"]
    for name in (names[0], names[-1]):
        for part, values in (
            ("dtype", (*VALUES, "F99", "F64", "BOOL", "I8", "F8_E4M3")),
            ("shape", (*VALUES, [0], [-1, 2], [2**40, 2**40], [1.5], [10**30])),
            ("data_offsets", (*VALUES, [0], [4, 0], [0, 10**9], [2**63, 2**64 - 1], [0, 1, 2])),
        ):
            for value in values:
                yield f"{part} of {name} is {value}", packed(header | {name: header[name] | {part: value}})
    for value in VALUES:
        yield f"{names[0]} is {value}", packed(header | {names[0]: value})
        yield f"the metadata are {value}", packed(header | {"__metadata__": value})
        yield f"the header is {value}", packed(value)
    yield "no tensors", packed({})
    for name in names:
        yield f"no {name}", packed({key: value for key, value in header.items() if key != name})
    twice = json.dumps(header).encode()[:-1] + b"," + json.dumps({names[0]: header[names[1]]}).encode()[1:]
    yield "a name twice", framed(twice)
    yield "a deep header", framed(DEEP.encode())
    yield "a header that is no text", framed(b'{"\xff\xfe": {}}')
    for number in NUMBERS:
        yield f"a header of {number} bytes", struct.pack("<Q", number) + json.dumps(header).encode()


def packed(header: Any) -> bytes:
    """A header with its length in front."""
    return framed(json.dumps(header).encode())


def framed(text: bytes) -> bytes:
    """Text with its length in front."""
    return struct.pack("<Q", len(text)) + text


def configurations(whole: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Contents of a config.json with one field of another type or size, or that are no configuration."""
    for name in (*whole, "rope_scaling", "rope_parameters", "attention_bias", "adapter_rank", "layer_types"):
        for value in VALUES:
            yield f"{name} is {value!r}", json.dumps(whole | {name: value})
    for text in ("", "{", "[]", "null", "7", DEEP, "\x00", '{"model_type": "mercury"}', '{"model_type": ' + DEEP + "}"):
        yield f"it is {text[:30]!r}", text


def tokenizers(whole: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Contents of a tokenizer.json that cannot be used, or not with its weights."""
    for text in ("", "{", "[]", "null", DEEP, "\x00", '{"model": {"type": "BPE"}}'):
        yield f"it is {text[:30]!r}", text
    for name in whole:
        for value in VALUES:
            yield f"{name} is {value!r}", json.dumps(whole | {name: value})
    model = whole["model"]
    for name in model:
        for value in VALUES:
            yield f"the model's {name} is {value!r}", json.dumps(whole | {"model": model | {name: value}})
    ids = list(model["vocab"].values())
    for number in (500, 501, 10_000, 2**31, 2**32 - 1):
        changed = dict(zip(model["vocab"], [*ids[:-1], number], strict=True))
        yield f"a token has the number {number}", json.dumps(whole | {"model": model | {"vocab": changed}})
        added = [{**whole["added_tokens"][0], "id": number, "content": "<beyond>"}]
        yield f"an added token has the number {number}", json.dumps(whole | {"added_tokens": added})
    half = dict(list(model["vocab"].items())[: len(ids) // 2])
    yield "half of its tokens", json.dumps(whole | {"model": model | {"vocab": half}})
    yield "half of its tokens and no merges", json.dumps(whole | {"model": model | {"vocab": half, "merges": []}})


def folder(path: Path) -> Path:
    """An undamaged folder of a model that the C kernels run."""
    return tiny.folder(path, rank=0, **tiny.WIDE)


def native_gguf(path: Path) -> Path:
    """An undamaged GGUF file of a model that the C kernels run."""
    return tiny_gguf.convert(path, tiny.network(0, **tiny.WIDE), "llama")


def rewritten(whole: Path, path: Path, changes: dict[str, Any]) -> Path:
    """The file with other metadata: a value of another type, or None for none at all."""
    reader = gguf.GGUFReader(whole)
    made = gguf.GGUFWriter(path, "llama")
    kept = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    for name, value in (kept | changes).items():
        if value is None or name == gguf.Keys.General.ARCHITECTURE:
            continue
        kind = kept.get(name) == value and reader.fields[name].types
        types = kind or [gguf.GGUFValueType.get_type(value)]
        made.add_key_value(name, value, *types)
    for tensor in reader.tensors:
        made.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    tiny_gguf.finish(made)
    return path


def metadata(whole: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metadata of a GGUF file that name no model, or one that its tensors are not of."""
    known = gguf.GGUFReader(whole).fields
    tokens, merges = (known[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    kinds = known["tokenizer.ggml.token_type"].contents()
    names = [name for name in known if not name.startswith("GGUF.") and name != gguf.Keys.General.ARCHITECTURE]
    more = ("general.alignment", "split.count", "tokenizer.ggml.bos_token_id", "llama.rope.scaling.factor")
    for name in (*names, *more, "llama.expert_count", "general.name"):
        yield f"no {name}", {name: None}
        for value in (True, 0, -1, 3, 2**31 - 1, -(2**31), 0.5, float("nan"), float("inf"), "", "word", [4], ["word"]):
            yield f"{name} is {value!r}", {name: value}
    lists = {
        "half of its tokens": {"tokens": tokens[: len(tokens) // 2]},
        "half of its tokens and kinds": {"tokens": tokens[: len(tokens) // 2], "token_type": kinds[: len(kinds) // 2]},
        "half of its kinds": {"token_type": kinds[: len(kinds) // 2]},
        "one token": {"tokens": tokens[:1]},
        "one token only, many times": {"tokens": ["a"] * len(tokens)},
        "two tokens alike": {"tokens": [tokens[1], *tokens[1:]]},
        "twice its tokens": {"tokens": tokens + [f"<{each}>" for each in tokens]},
        "tokens that are all special": {"token_type": [3] * len(kinds)},
        "tokens that are all padding": {"token_type": [5] * len(kinds)},
        "kinds that are none": {"token_type": [99] * len(kinds)},
        "half of its merges": {"merges": merges[: len(merges) // 2]},
        "merges without a blank": {"merges": [merge.replace(" ", "") for merge in merges]},
        "merges with two blanks": {"merges": [merge + " x" for merge in merges]},
        "empty merges": {"merges": [" "] * len(merges)},
        "merges backwards": {"merges": merges[::-1]},
        "one merge many times": {"merges": merges[:1] * len(merges)},
        "merges of what is no token": {"merges": ["x yzzy"]},
        "empty tokens": {"tokens": [""] * len(tokens)},
        "a text that begins beyond its tokens": {"bos_token_id": 10_000},
    }
    for what, changes in lists.items():
        yield what, {f"tokenizer.ggml.{name}": value for name, value in changes.items()}
