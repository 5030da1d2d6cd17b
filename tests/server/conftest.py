"""Places where a daemon may be met."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sharing import Place


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
