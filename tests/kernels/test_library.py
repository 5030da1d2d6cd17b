"""The library for this processor is found without torch; one that does not fit or is broken is refused with advice."""

import re
import subprocess
import sys
from pathlib import Path

import compile_kernels
import pytest
from mercury_kernels.cpu import builds, library

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/cpuinfo or ELF files")
needs_compiler = pytest.mark.skipif(compile_kernels.compiler() is None, reason="no C compiler")
needs_probe = pytest.mark.skipif(not builds.path(builds.PROBE).is_file(), reason="not built")


@pytest.fixture(autouse=True)
def forgetful():
    """What was loaded is forgotten before and after each test."""
    for cached in (library.features, library.library):
        cached.cache_clear()
    yield
    for cached in (library.features, library.library):
        cached.cache_clear()


@pytest.fixture
def compiled(tmp_path):
    """A function that compiles C text into a library."""

    def compile_text(text: str) -> Path:
        source, target = tmp_path / "other.c", tmp_path / "other.so"
        source.write_text(text)
        subprocess.run([*compile_kernels.compiler(), "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
        return target

    return compile_text


@pytest.fixture
def file(tmp_path) -> Path:
    """A copy of a library, to be damaged."""
    copy = tmp_path / "copy.so"
    copy.write_bytes(builds.path(builds.PROBE).read_bytes())
    return copy


@needs_probe
def test_finding_and_loading_a_library_imports_no_torch():
    code = "import sys; from mercury_kernels.cpu import library; library.library(); print('torch' in sys.modules)"
    path = [str(builds.FOLDER.parents[1])]
    setup = f"import sys; sys.path[:0] = {path!r}; {code}"
    ran = subprocess.run([sys.executable, "-c", setup], capture_output=True, text=True)
    assert ran.stdout == "False\n", ran.stderr


@needs_compiler
@pytest.mark.parametrize("text", ["int other;", f"int mercury_version(void) {{ return {library.VERSION}; }}"])
def test_a_library_without_all_functions_is_refused(compiled, text):
    with pytest.raises(OSError, match="another version .* install "):
        library.load(compiled(text + "\n"))


@linux_only
@needs_probe
@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_library_is_refused_before_it_kills_the_process(file, share):
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(OSError, match="is incomplete. To replace it: .* install "):
        library.load(file)


@linux_only
@needs_probe
@pytest.mark.parametrize(
    ("place", "bytes_", "said"),
    [
        (0, b"", "has another version"),
        (0, b"<html>", "cannot be loaded"),
        (0, b"MZ", "cannot be loaded"),  # of Windows
        (18, b"\xf3", "cannot be loaded"),  # of another processor
        (4, b"\x01", "cannot be loaded"),
    ],
)
def test_a_library_of_another_platform_is_refused(file, place, bytes_, said):
    whole = file.read_bytes()
    file.write_bytes(whole[:place] + bytes_ + whole[place + len(bytes_) :])
    with pytest.raises(OSError, match=f"{said}.* To replace it: .* install "):
        library.load(file)


@pytest.mark.skipif(not builds.kinds(), reason="no kernels for this machine")
@pytest.mark.parametrize("left", [(), ("probe",)])
def test_kernels_that_were_not_built_are_an_error(monkeypatch, tmp_path, left):
    whole = builds.path
    monkeypatch.setattr(library, "path", lambda kind: whole(kind) if kind in left else tmp_path / f"{kind}.so")
    assert library.built() is None
    with pytest.raises(OSError, match="were not built. To build them: .* install ") as raised:
        library.library()
    assert not isinstance(raised.value, library.UnsupportedProcessor)


@needs_probe
def test_a_processor_without_the_needed_features_gets_torch_recommended(monkeypatch):
    monkeypatch.setattr(library, "features", frozenset)
    assert library.suitable() == []
    with pytest.raises(library.UnsupportedProcessor, match=r"no C kernels for this processor .* install .*\[gpu\]"):
        library.library()


def test_no_message_names_the_project_to_pip_which_would_install_whatever_an_index_has():
    root = Path(__file__).parents[2]
    sources = [path for folder in ("mercury_lsp", "engine", "kernels") for path in (root / folder).rglob("*.py")]
    assert sources and not [
        path for path in sources if re.search(r"pip install '?mercury-lsp", path.read_text("utf-8"))
    ]
