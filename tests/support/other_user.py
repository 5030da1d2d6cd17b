"""Lets another user of the machine do something; needs root."""

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

OTHER = 54_321
"""User and group; nobody has to have them."""

root_only = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux")


def as_other_user(do: Callable[[], Any]) -> Any:
    """What the other user gets, or the exception that is raised for him; he has no rights of ours."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            try:
                found = do()
            except Exception as error:
                found = error
            os.write(writing, pickle.dumps(found))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        found = said.read()
    os.waitpid(child, 0)
    return pickle.loads(found)
