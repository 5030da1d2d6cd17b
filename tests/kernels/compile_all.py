"""Compiles every kernel for a GPU on a machine without any, at the shapes of models.

Run as a script with the name of a GPU in `CARDS` and names of models, or none for a few shapes, it prints one JSON line
a kernel: registers, bytes of stack (spilled registers) and of shared memory, how often it copies asynchronously and
multiplies matrices.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
import triton
from mercury_kernels import answers, attention, launch, linear, qkv, reveal
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.operands import Matrix, Rows, Slots
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

BINARIES = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class Card(NamedTuple):
    """A GPU: its compute capability, its multiprocessors, and the bytes of shared memory that a program may have."""

    capability: int
    multiprocessors: int
    shared: int


CARDS = {
    "A100": Card(80, 108, 166_912),
    "RTX 3060": Card(86, 28, 101_376),
    "RTX 3090": Card(86, 82, 101_376),
    "RTX 4060": Card(89, 24, 101_376),
    "RTX 4090": Card(89, 128, 101_376),
    "H200": Card(90, 132, 232_448),
    "B200": Card(100, 148, 232_448),
    "RTX 5060": Card(120, 30, 101_376),
    "RTX 5090": Card(120, 170, 101_376),
}

MODELS = {  # channels, inner channels, query heads, key heads, head width, vocabulary with mask and end
    "135M": (576, 1536, 9, 3, 64, 23176),
    "0.5B": (896, 4864, 14, 2, 64, 151938),
    "1.5B": (1536, 8960, 12, 2, 128, 151938),
    "1.7B": (2048, 6144, 16, 8, 128, 151938),
    "7B": (3584, 18944, 28, 4, 128, 152066),
    "8B": (4096, 12288, 32, 8, 128, 151938),
}

NORMED = ("1.7B", "8B")
"""Models with norms of queries and keys."""

ADAPTED, RANK = ("135M", "0.5B", "1.5B"), 32
"""Models with adapters, and the rank of those."""

ROWS = (16, 32, 64)
"""Rows of steps."""

KERNELS = (answers, attention, linear, qkv, reveal)


class Target:
    """The part of a driver that compiling needs."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)


now = {"model": ""}
"""The model whose shapes are compiled now."""


def compile_only(kernel: JITFunction, grid: object):
    """Stands in for `kernel[grid]`: compiles without a launch and prints a line about the binary."""

    def run(*args, **kwargs):
        made = kernel.run(*args, grid=grid, warmup=True, **kwargs)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(made.asm["cubin"])
            file.flush()
            command = [BINARIES / "cuobjdump", "--dump-resource-usage", file.name]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        registers, stack = (int(re.search(rf"{name}:(\d+)", told)[1]) for name in ("REG", "STACK"))
        ptx = made.asm["ptx"]
        row = {
            "kernel": kernel.fn.__name__,
            **now,
            "grid": grid,
            "registers": registers,
        }
        row |= {
            "float32": args[0].dtype is torch.float32,
            "stack": stack,
            "shared": made.metadata.shared,
            "copies": ptx.count("cp.async.c"),
            "dots": sum(map(ptx.count, ("mma.sync", "wgmma.mma", "tcgen05.mma"))),
        }
        print(json.dumps(row), flush=True)

    return run


def weights(
    outputs: int, inputs: int, kind: torch.dtype = torch.bfloat16, rank: int = 0, is_coded: bool = False
) -> Matrix:
    factors = [torch.empty(*shape, dtype=kind) for shape in ((rank, inputs), (outputs, rank))] if rank else [None, None]
    scales = torch.empty(inputs // GROUP, outputs, dtype=torch.float16) if is_coded else None
    return Matrix(torch.empty(outputs, inputs, dtype=torch.int8 if is_coded else kind), None, *factors, scales=scales)


def layer(
    rows: int,
    shape: tuple[int, ...],
    kind: torch.dtype = torch.bfloat16,
    has_norms: bool = False,
    rank: int = 0,
    is_coded: bool = False,
) -> None:
    """One layer's kernels for `rows` rows over the most keys."""
    channels, inner, queries, heads, width, _ = shape
    given = kind, rank, is_coded
    x, scale = torch.empty(rows, channels, dtype=kind), torch.empty(channels, dtype=kind)
    keys = torch.empty(heads, 4096, width, dtype=kind)
    table, numbers = torch.empty(4096, width), torch.zeros(rows, dtype=torch.long)
    matrix, norms = weights((queries + 2 * heads) * width, channels, *given), torch.empty(2, width, dtype=kind)
    places = Rows(numbers, numbers, numbers, numbers[0], table, table)
    q, _ = qkv.project_qkv(x, scale, 1e-5, matrix, norms if has_norms else None, places, keys, keys)
    attended = attention.attention(q, keys, keys, places, 0.1)
    linear.linear(attended, weights(channels, queries * width, *given), residual=x)
    h = linear.linear(x, weights(2 * inner, channels, *given), scale, 1e-5, gated=True)
    linear.linear(h, weights(channels, inner, *given), residual=x)


def head(rows: int, channels: int, vocabulary: int) -> None:
    """The head that answers about rows."""
    x, lists = torch.empty(rows, channels, dtype=torch.bfloat16), torch.zeros(rows, dtype=torch.int32)
    bits = torch.zeros(2, -(-vocabulary // 32), dtype=torch.int32)
    for keeps in (False, True):
        answers.answers(x, weights(vocabulary, channels), bits, lists, 1.0, -1, keeps)


def rule(rows: int) -> None:
    """What a denoise step does to its slots."""
    numbers, tokens = torch.zeros(rows, dtype=torch.long), torch.zeros(rows, 64, dtype=torch.int32)
    figures = torch.zeros(64, dtype=torch.double)
    slots = Slots(numbers, numbers, numbers, figures, figures, 1)
    token, sure = reveal.draw(tokens, torch.zeros(rows, 64), slots)
    for told in (sure, torch.zeros(rows, 4)):
        reveal.reveal(token, told, slots)


def aim(card: Card) -> None:
    """Launch options of the GPU."""
    launch.shared_memory = lambda _: card.shared  # type: ignore[assignment]
    for module in KERNELS:
        module.options = lambda _, warps, stages: {"num_warps": warps, "num_stages": stages}  # type: ignore[attr-defined]
    for module in (attention, linear, qkv):
        module.multiprocessors = lambda _: card.multiprocessors  # type: ignore[attr-defined]


def main(card: Card, models: list[str]) -> None:
    triton.runtime.driver.set_active(Target(card.capability))
    JITFunction.__getitem__ = compile_only
    aim(card)
    for model in models or ["135M"]:
        now["model"], shape = model, MODELS[model]
        for rows in ROWS if models else ROWS[:1]:
            for rank in (0, RANK)[: 1 + (model in ADAPTED)]:
                for is_coded in (False, True):
                    layer(rows, shape, has_norms=model in NORMED, rank=rank, is_coded=is_coded)
        for rows in ROWS if models else ROWS[:1]:
            head(rows, shape[0], shape[-1])
            rule(rows)
    for model in ("135M", "7B") if models else ("135M",):
        now["model"] = model
        layer(64, MODELS[model])
        layer(16, MODELS[model], torch.float32)
    if not models:
        now["model"] = "0.5B"
        for is_coded in (False, True):  # its gated product asks for the most shared memory
            layer(64, MODELS["0.5B"], rank=RANK, is_coded=is_coded)
        now["model"] = "1.7B"
        layer(64, MODELS["1.7B"], has_norms=True)


if __name__ == "__main__":
    main(CARDS[sys.argv[1]], sys.argv[2:])
