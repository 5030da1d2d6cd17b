"""No test depends on how fast the machine is, and none touches what the user who runs it has.

Processes that tests start inherit a state folder of the tests' own, and to keep the model to themselves: nothing reads
or writes the user's statistics, or joins the user's daemon; those tests that are about sharing the model take
`MERCURY_IN_PROCESS` away again.
"""

import os
import tempfile

import pytest
from hypothesis import settings

_state = tempfile.TemporaryDirectory(prefix="mercury-state-")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported."""
    os.environ["XDG_STATE_HOME"] = _state.name
    os.environ["MERCURY_IN_PROCESS"] = "1"
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    _state.cleanup()
