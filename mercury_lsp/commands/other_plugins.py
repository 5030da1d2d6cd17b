"""Finds other installed editor plugins that draw suggestions."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

VSCODE_FOLDERS = (".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".cursor", ".windsurf")

VIM_FOLDERS = ("lazy", "plugged", "site/pack/*/start", "site/pack/*/opt", "pack/*/start", "pack/*/opt")


def found() -> list[str]:
    """The installed plugins, each with its editor; they may be disabled."""
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return sorted({*_in_vscode(known["vscode"]), *_in_vim(known["vim"])})


def _in_vscode(known: dict[str, str]) -> Iterator[str]:
    for folder in VSCODE_FOLDERS:
        for path in Path.home().joinpath(folder, "extensions").glob("*-*"):
            identifier = re.split(r"-\d+\.", path.name.lower())[0]
            if identifier in known:
                yield f"{known[identifier]} in VS Code"


def _in_vim(known: list[str]) -> Iterator[str]:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "nvim"
    windows = Path(os.environ.get("LOCALAPPDATA") or data) / "nvim-data"
    for root in (data, windows, Path.home() / ".vim"):
        for folder in VIM_FOLDERS:
            yield from (f"{path.name} in Vim or Neovim" for path in root.glob(f"{folder}/*") if path.name in known)
