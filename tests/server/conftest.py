"""Places where a daemon may be met."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.sharing import Place


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short folder in place of pytest's: the path of a Unix socket may have 107 characters, some systems fewer."""
    with TemporaryDirectory(prefix="mercury-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


@pytest.fixture(params=["unix", "tcp"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _made(getattr(Place, request.param)(tmp_path))


@pytest.fixture
def unix(tmp_path: Path) -> Iterator[Place]:
    yield from _made(Place.unix(tmp_path))


@pytest.fixture
def tcp(tmp_path: Path) -> Iterator[Place]:
    yield from _made(Place.tcp(tmp_path))


def _made(place: Place) -> Iterator[Place]:
    yield place
    place.close()
