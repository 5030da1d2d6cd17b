"""Compiles every kernel for Hopper on a machine without a GPU, at the shapes of the bundled model and of a 7 B one.

Run as a script, it prints one JSON line a kernel: registers, bytes of stack (spilled registers), how often it copies
asynchronously and multiplies matrices.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from mercury_kernels import attention, commit, head, launch, linear, norm, qkv, quantize, swiglu
from mercury_kernels.operands import Choice, Frames, Matrix, Slots, Table
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

BINARIES = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class Hopper:
    """The part of a driver that compiling needs."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


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
        row = {"kernel": kernel.fn.__name__, "grid": grid, "overlap": kwargs["OVERLAP"], "registers": registers}
        row |= {
            "stack": stack,
            "copies": ptx.count("cp.async.c"),
            "dots": ptx.count("wgmma.mma") + ptx.count("mma.sync"),
        }
        print(json.dumps(row), flush=True)

    return run


def weights(outputs: int, inputs: int, format_: torch.dtype) -> Matrix:
    plain = format_ is torch.bfloat16
    return Matrix(torch.zeros(outputs, inputs, dtype=format_), None, None if plain else torch.zeros(outputs))


def layer(rows: int, channels: int, inner: int, queries: int, heads: int, width: int, format_: torch.dtype) -> None:
    """One layer's kernels for `rows` canvas rows."""
    x, scale = torch.zeros(rows, channels, dtype=torch.bfloat16), torch.zeros(channels, dtype=torch.bfloat16)
    keys = torch.zeros(30, heads, 64, width, dtype=torch.bfloat16)
    cos = torch.zeros(2048, width // 2)
    places = torch.zeros(rows, dtype=torch.int32)
    frames = Frames(places, places, cos, cos, 100)
    matrix = weights((queries + 2 * heads) * width, channels, format_)
    q = qkv.project_qkv(x, scale, 1e-5, matrix, frames, keys, keys, places)
    table = Table(*(torch.zeros(1, n, dtype=torch.int32) for n in (29, 29, 2)))
    attended = attention.paged_attention(q, keys, keys, table)
    linear.linear(attended, weights(channels, queries * width, format_), residual=x)
    h = linear.linear(x, weights(2 * inner, channels, format_), scale, 1e-5, gated=True)
    linear.linear(h, weights(channels, inner, format_), residual=x)


def others(rows: int, channels: int, vocabulary: int) -> None:
    """Head, commit and the kernels for many rows."""
    x, scale = torch.zeros(rows, channels, dtype=torch.bfloat16), torch.zeros(channels, dtype=torch.bfloat16)
    banned = torch.zeros(2, vocabulary, dtype=torch.bool)
    places = torch.zeros(rows, dtype=torch.int32)
    head.choices(x, weights(vocabulary, channels, torch.bfloat16), banned, places, scale, 1e-5)
    real = torch.zeros(rows)
    slots = Slots(places[None], places[:1], real[:1], places[:1], real[None], places[:1], places[:1])
    commit.commit(slots, Choice(places, real, real, real), 500, 501)
    norm.rms_norm(x, scale, 1e-5)
    swiglu.swiglu(x)
    keys = torch.zeros(30, 3, 64, 64, dtype=torch.bfloat16)
    frames = Frames(places, places, torch.zeros(99, 32), torch.zeros(99, 32), 9)
    many = torch.zeros(rows, 15 * 64, dtype=torch.bfloat16)
    qkv.rotate_and_store(many, frames, keys, keys, places, (scale[:64], scale[:64]), 1e-5)
    for format_ in (torch.int8, torch.float8_e4m3fn):
        quantize.quantize_rows(x, format_, scale, 1e-5)


def aim(overlap: bool) -> None:
    """Launch options of a Hopper GPU with 132 multiprocessors."""
    more = {"launch_pdl": True} if overlap else {}
    for module in (attention, commit, head, linear, norm, qkv, quantize, swiglu):
        module.options = lambda _, warps, stages: {  # type: ignore[attr-defined]
            "num_warps": warps, "num_stages": stages, "OVERLAP": overlap, **more
        }  # fmt: skip
    for module in (attention, linear, qkv):
        module.multiprocessors = lambda _: 132  # type: ignore[attr-defined]


def main() -> None:
    triton.runtime.driver.set_active(Hopper())
    JITFunction.__getitem__ = compile_only
    launch.compile_failure = lambda _: False  # let failures show
    for overlap in (False, True):
        aim(overlap)
        layer(33, 576, 1536, 9, 3, 64, torch.bfloat16)
        others(33, 576, 23176)
    layer(17, 3584, 18944, 28, 4, 128, torch.float8_e4m3fn)
    layer(64, 3584, 18944, 28, 4, 128, torch.int8)
    for format_ in (torch.int8, torch.float8_e4m3fn):
        many = torch.zeros(2112, 896, dtype=torch.bfloat16)
        linear.linear(many, weights(2 * 4864, 896, format_), many[0], 1e-5, gated=True)


if __name__ == "__main__":
    main()
