"""A CPU needs no torch: neither an import nor an installation of it."""

import subprocess
import sys

import pytest
from mercury_kernels.installation import install_command

from tests.support import tiny

NO_TORCH = """
import sys
sys.modules.update(dict.fromkeys(("torch", "triton", "transformers")))
"""
"""Makes an interpreter one in which torch is not installed."""

FILL_AND_SCORE = """
from mercury_engine.api import FillRequest
from mercury_lab.engine import Engine
engine = Engine.load(sys.argv[1], threads=1)
request = FillRequest(near="def add(a, b):\\n    return ", suffix=("\\n",), lookup_text=("a + b\\n",), max_slots=8)
fill = engine.fill(request)
assert fill.steps > 0
assert engine.fill(request).text == fill.text
engine.rest()
packages = {name.partition(".")[0] for name, module in sys.modules.items() if module}
assert not packages & {"torch", "triton", "transformers"}
print(engine.backend)
"""


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("light"), rank=0, **tiny.WIDE)


@tiny.needs_kernels
def test_a_fill_on_a_cpu_imports_no_torch(folder):
    done = run("import sys\n" + FILL_AND_SCORE, folder)
    assert done.stdout == "native\n", done.stderr


@tiny.needs_kernels
def test_a_fill_on_a_cpu_needs_no_torch(folder):
    done = run(NO_TORCH + FILL_AND_SCORE, folder)
    assert done.stdout == "native\n", done.stderr


LOAD = """
from mercury_lab.engine import Engine
from mercury_engine.errors import RequestError
try:
    Engine.load(sys.argv[1], device=sys.argv[2], backend=sys.argv[3])
except RequestError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("device", "backend"), [("cuda", "auto"), ("cpu", "torch"), ("cuda", "torch")], ids=["cuda", "torch", "both"]
)
def test_what_needs_torch_names_the_command_that_installs_it(folder, device, backend):
    done = run(NO_TORCH + LOAD, folder, device, backend)
    assert "torch is not installed" in done.stdout, done.stderr
    assert install_command("gpu") in done.stdout


def test_a_model_that_the_kernels_cannot_run_names_the_command_that_installs_torch(tmp_path):
    done = run(NO_TORCH + LOAD, tiny.folder(tmp_path, rank=0), "cpu", "auto")  # of a shape the kernels do not support
    assert "head width 8" in done.stdout, done.stderr
    assert install_command("gpu") in done.stdout
