"""A desk for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.neovim import Desk, find_nvim, find_nvim_0_12


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    yield from _desk(find_nvim(), tmp_path, "no nvim beside this Python or on the PATH")


@pytest.fixture
def desk_0_12(tmp_path: Path) -> Iterator[Desk]:
    yield from _desk(find_nvim_0_12(), tmp_path, "no Neovim 0.12: set NVIM_0_12 to its binary")


def _desk(binary: str | None, folder: Path, missing: str) -> Iterator[Desk]:
    if binary is None:
        pytest.skip(missing)
    desk = Desk(binary, folder)
    yield desk
    if desk.nvim:
        desk.nvim.close()
