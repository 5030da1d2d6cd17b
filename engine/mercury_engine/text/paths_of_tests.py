"""Recognises tests by their paths."""

import re
from pathlib import PurePosixPath

_TEST_FOLDERS = frozenset(("__tests__", "spec", "test", "testing", "tests"))
_TEST_NAME = re.compile(r"(^|[._-])(tests?|spec)[._]|^conftest\.py$")


def is_test(path: str) -> bool:
    """Whether the path belongs to a test."""
    parts = PurePosixPath(path).parts
    return bool(parts) and (not _TEST_FOLDERS.isdisjoint(parts[:-1]) or bool(_TEST_NAME.search(parts[-1])))
