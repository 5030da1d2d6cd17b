"""Kernels run in Triton's interpreter on the CPU, or compiled on a GPU under `-m gpu`; never both in a process."""

import compile_kernels
import pytest
from mercury_kernels.cpu import builds, library

try:
    import gguf
except ImportError:  # as on a borrowed GPU machine, which these tests do not need
    gguf = None

collect_ignore = [] if gguf else ["test_blocks.py"]

PLAIN = "plain"


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The tensors are small, so threads would only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest):
    """The CPU, where kernels are interpreted, or the GPU; random numbers start from a fixed seed."""
    import torch
    from mercury_kernels.launch import INTERPRETED

    if (request.param == "cpu") != INTERPRETED.value:
        pytest.skip("the GPU needs -m gpu, the interpreter the absence of it")
    torch.manual_seed(0)
    return torch.device(request.param)


@pytest.fixture(scope="session", params=[*library.suitable(), PLAIN])
def loaded(request, tmp_path_factory):
    """Every build of the library, and one in plain C without special instructions."""
    if request.param != PLAIN:
        if not builds.path(request.param).is_file():
            pytest.skip("not built")
        return library.load(builds.path(request.param))
    target = tmp_path_factory.mktemp("kernels") / "plain.so"
    # Plain C for the widest lanes takes a minute at -O3 and four seconds at -O1.
    compile_kernels.compile_kind(compile_kernels.compiler(), ("-O1", "-Wall", "-Wextra", "-Werror"), target)
    return library.load(target)
