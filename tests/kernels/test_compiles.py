"""Every kernel compiles for five generations of GPUs: the interpreter accepts code that the compiler rejects."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from tests.kernels.compile_all import CARDS

KERNELS = {"_attend", "_draw", "_join", "_linear", "_project_qkv", "_reveal", "_tell"}

MOST_HEAD_REGISTERS = 160
"""Registers of the kernel that computes logits, of which two programs fit on a multiprocessor with 8 warps."""


MOST_SPILLED = 16
"""Bytes of stack that a program may use."""

MODELS = os.environ.get("MERCURY_COMPILED_MODELS", "").split()
"""Models at whose shapes all is compiled for all cards (`make interpreted`); by default some shapes, for two."""


def compiled(card: str) -> list[dict]:
    script = Path(__file__).with_name("compile_all.py")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, script, card, *MODELS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("card", CARDS if MODELS else ["RTX 4060", "H200"])
def test_every_kernel_fits_the_card_and_does_not_spill(card):
    rows = compiled(card)
    assert {row["kernel"] for row in rows} == KERNELS
    assert {row["model"] for row in rows} >= {*MODELS}
    for row in rows:
        assert row["stack"] <= MOST_SPILLED, row
        assert row["shared"] <= CARDS[card].shared, row
        if row["kernel"] == "_tell":
            assert row["registers"] <= MOST_HEAD_REGISTERS, row
        if row["kernel"] in ("_attend", "_linear", "_project_qkv", "_tell") and not row["float32"]:
            assert row["copies"] > 0, row  # loads run ahead of the products
            assert row["dots"] > 0, row
