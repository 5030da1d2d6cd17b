"""The kernels for ARM, on any machine with a cross compiler; their products run where there is an emulator too."""

import shutil
import subprocess
from pathlib import Path

import compile_kernels
import pytest
from mercury_kernels.cpu import builds

GCC, EMULATOR = (
    shutil.which("aarch64-linux-gnu-gcc"),
    shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64"),
)

PRODUCTS = r"""
#include "lanes.h"

/* Compares the products of a vector's bytes with plain ones: codes of eight bits, then of seven; bytes are signed. */
int main(void) {
    unsigned state = 1, wrong = 0;
    for (int round = 0; round < 1000; round++) {
        unsigned char codes[16];
        signed char bytes[16];
        for (int i = 0; i < 16; i++) {
            state = state * 1664525u + 1013904223u;
            codes[i] = (unsigned char)(state >> 24);
            bytes[i] = (signed char)(state >> 16);
        }
        for (int bits = 8; bits >= 7; bits--) {
            int32_t wanted[4] = {7, 7, 7, 7}, got[4];
            ints c, b, made;
            for (int i = 0; i < 16; i++) {
                if (bits == 7) codes[i] &= 127;
                wanted[i / 4] += codes[i] * bytes[i];
            }
            memcpy(&c, codes, 16);
            memcpy(&b, bytes, 16);
            made = bits == 7 ? dot(all_ints(7), c, b) : dot_wide(all_ints(7), c, b);
            memcpy(got, &made, 16);
            wrong += memcmp(got, wanted, 16) != 0;
        }
    }
    return wrong != 0;
}
"""

pytestmark = pytest.mark.skipif(GCC is None, reason="no aarch64-linux-gnu-gcc")


@pytest.fixture
def cross(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Builds are for ARM, and go to this folder."""
    monkeypatch.setattr(builds, "machine", lambda: "arm64")
    monkeypatch.setattr(builds, "path", lambda kind: tmp_path / f"{kind}.so")
    monkeypatch.setenv("CC", str(GCC))
    return tmp_path


def test_gcc_builds_every_kind_for_arm(cross: Path):
    made = compile_kernels.build()
    assert [path.name for path in made] == ["probe.so", *(f"{name}.so" for name in builds.kinds())]
    assert all(path.read_bytes()[18:20] == b"\xb7\x00" for path in made)  # EM_AARCH64


@pytest.mark.skipif(EMULATOR is None, reason="no qemu-aarch64")
def test_products_of_bytes_are_exact_on_arm(cross: Path):
    source, program = cross / "products.c", cross / "products"
    source.write_text(PRODUCTS)
    flags = builds.INSTRUCTION_SETS["dotprod"].flags
    command = [str(GCC), "-O2", "-static", *flags, f"-I{builds.FOLDER}", str(source), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, timeout=120)
    assert subprocess.run([str(EMULATOR), str(program)], timeout=120).returncode == 0
