"""No test depends on how fast the machine is, and none touches what the user who runs it has.

Processes that tests start inherit state and data folders of the tests' own, and to keep the model to themselves:
nothing reads or writes the user's statistics, loads the model that the user chose, or joins the user's daemon; those
tests that are about sharing the model take `MERCURY_IN_PROCESS` away again.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support import warm

try:
    from mercury_lsp.documents import document
except ImportError:  # the trainer's tests also run on GPU machines without anything of LSP
    document = None

collect_ignore = ["data"]
"""Files that are completed, some of them tests themselves."""

_state = tempfile.TemporaryDirectory(prefix="mercury-state-")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported, because Triton decides at import whether it interprets kernels."""
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_DATA_HOME"] = _state.name
    os.environ["MERCURY_IN_PROCESS"] = "1"
    if warm.POSSIBLE:
        config.add_cleanup(warm.Offer(_state.name).end)
    if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):  # they share the processors
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    if config.option.markexpr != "gpu":
        if "triton" in sys.modules and not sys.modules["triton"].knobs.runtime.interpret:
            raise pytest.UsageError(
                "Triton was imported before its interpreter was asked for; load no plugin that imports it"
            )
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        os.environ["MERCURY_STRICT_KERNELS"] = "1"
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect no garbage among the imported modules: loading a model collects, in 0.25 s with them and 0.02 without."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    _state.cleanup()


@pytest.fixture(autouse=True, scope="session")
def parses_are_not_cut_short() -> Iterator[None]:
    """A busy machine parses as much as a quiet one; the tests of running out of time set a limit of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("KEYSTROKE_PARSE_SECONDS", "PAUSE_PARSE_SECONDS", "FIRST_PARSE_SECONDS") if document else ():
            patch.setattr(document, limit, 60.0)
        yield
