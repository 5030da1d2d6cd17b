"""The kernels are built, hardened, with the compiler that is there or with Zig; a build of nothing is an error."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import compile_kernels
import pytest
from mercury_kernels.cpu import builds, library

ROOT = Path(__file__).resolve().parents[2]

needs_compiler = pytest.mark.skipif(compile_kernels.compiler() is None, reason="no C compiler")
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the compiler")


@pytest.fixture
def only_compiler(monkeypatch, tmp_path):
    """A function that makes a shell script the system's only C compiler."""

    def install(script: str) -> None:
        compiler = tmp_path / "cc"
        compiler.write_text(f"#!/bin/sh\n{script}\n")
        compiler.chmod(0o755)

    compile_kernels._knows_everything.cache_clear()
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None)
    yield install
    compile_kernels._knows_everything.cache_clear()


def test_without_a_compiler_the_build_fails_and_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(compile_kernels, "compiler", lambda: None)
    monkeypatch.setattr(builds, "machine", lambda: "x86_64")
    with pytest.raises(
        compile_kernels.BuildError, match=r"no C compiler .* Install .* or install Zig \(pip install ziglang\)"
    ):
        compile_kernels.build()


@unix_only
def test_a_machine_without_kernels_needs_no_zig(only_compiler, monkeypatch):
    monkeypatch.setattr(builds, "machine", lambda: "riscv64")
    assert not compile_kernels.needs_zig() and compile_kernels.build() == []


def test_zig_compiles_for_the_oldest_processor_and_system(monkeypatch):
    """Without a target it compiles for the processor that it runs on, and no other one could run the result."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(builds, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.41"))
    assert compile_kernels.zig_target() == "x86_64-linux-gnu.2.17"
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert compile_kernels.zig_target() == "x86_64-linux-musl"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(builds, "machine", lambda: "arm64")
    monkeypatch.delenv("MACOSX_DEPLOYMENT_TARGET", raising=False)
    assert compile_kernels.zig_target() == "aarch64-macos.11.0"
    monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", "13.0")
    assert compile_kernels.zig_target() == "aarch64-macos.13.0"
    monkeypatch.setattr(sys, "platform", "win32")
    assert compile_kernels.zig_target() == "aarch64-windows-gnu"


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("readelf"), reason="reads ELF files with readelf")
@pytest.mark.parametrize("name", library.suitable())
def test_builds_are_hardened(name):
    if not builds.path(name).is_file():
        pytest.skip("not built")
    read = subprocess.run(
        ["readelf", "-W", "-l", "-d", "-s", str(builds.path(name))], capture_output=True, text=True, check=True
    ).stdout
    assert "GNU_RELRO" in read and "BIND_NOW" in read and "__stack_chk_fail" in read and "__memcpy_chk" in read
    stack = next(line for line in read.splitlines() if "GNU_STACK" in line)
    assert " RWE " not in stack


@unix_only
@pytest.mark.parametrize(("script", "asked"), [(None, ["ziglang"]), ("exit 0", [])])
def test_the_package_asks_for_zig_exactly_without_a_compiler(tmp_path, script, asked):
    pytest.importorskip("hatchling")
    if script:
        (tmp_path / "cc").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "cc").chmod(0o755)
    ask = "from hatchling.build import get_requires_for_build_wheel as ask; print(*ask(), sep='\\n')"
    bare = {name: value for name, value in os.environ.items() if name != "CC"} | {"PATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, env=bare, capture_output=True, text=True)
    assert [line.partition("==")[0] for line in ran.stdout.split()] == asked, ran.stderr
    if asked:
        assert ran.stdout.strip() in (ROOT / "constraints.txt").read_text().splitlines()
