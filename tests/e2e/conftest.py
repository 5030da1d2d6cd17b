"""A desk in Neovim for every test, and a workbench of VS Code for all tests of a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.neovim import Desk, find_nvim, find_nvim_0_12
from tests.support.vscode import Open, Window, Workbench, head, missing, tapped


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


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    if (what := missing()) is not None:
        pytest.skip(what)
    workbench = Workbench(tmp_path_factory.mktemp("vscode"))
    yield workbench
    workbench.close()


@pytest.fixture
def window(workbench: Workbench, tmp_path: Path) -> Iterator[Open]:
    """Opens a window on a Python file, with settings of the user; what the engine suggests stands in the first line."""
    opened: list[Window] = []

    def open_window(fill: dict[str, Any], text: str = "", settings: dict[str, Any] | None = None) -> Window:
        file = tmp_path / str(len(opened)) / "a.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(head(fill) + text)
        workbench.configure({"mercury.command": tapped(file)} | (settings or {}))
        opened.append(workbench.open(file))
        return opened[-1]

    yield open_window
    for each in opened:
        each.close()
