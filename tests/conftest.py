"""No test reads or writes the statistics of the user who runs it; processes that tests start inherit this."""

import os
import tempfile

import pytest

_state = tempfile.TemporaryDirectory(prefix="mercury-state-")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported."""
    os.environ["XDG_STATE_HOME"] = _state.name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    _state.cleanup()
