"""Finds other installed editor plugins that draw suggestions."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

VSCODE_FOLDERS = (".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".cursor", ".windsurf")

VSCODE = {
    "amazonwebservices.amazon-q-vscode": "Amazon Q",
    "codeium.codeium": "Windsurf",
    "continue.continue": "Continue",
    "ggml-org.llama-vscode": "llama.vscode",
    "github.copilot": "Copilot",
    "github.copilot-chat": "Copilot Chat",
    "supermaven.supermaven": "Supermaven",
    "tabbyml.vscode-tabby": "Tabby",
    "tabnine.tabnine-vscode": "Tabnine",
}
"""Extensions by identifier; their folders are named `IDENTIFIER-VERSION`, some with `-SYSTEM`."""

VIM = frozenset(
    {
        "codeium.nvim",
        "codeium.vim",
        "copilot.lua",
        "copilot.vim",
        "cursortab.nvim",
        "llama.vim",
        "minuet-ai.nvim",
        "neocodeium",
        "supermaven-nvim",
        "vim-tabby",
        "windsurf.nvim",
        "windsurf.vim",
    }
)
"""Plugins by repository name, which plugin managers use as the folder's name."""

VIM_FOLDERS = ("lazy", "plugged", "site/pack/*/start", "site/pack/*/opt", "pack/*/start", "pack/*/opt")


def found() -> list[str]:
    """The installed plugins, each with its editor; they may be disabled."""
    return sorted({f"{name} in VS Code" for name in _in_vscode()} | {f"{name} in Vim or Neovim" for name in _in_vim()})


def _in_vscode() -> Iterator[str]:
    for folder in VSCODE_FOLDERS:
        for path in Path.home().joinpath(folder, "extensions").glob("*-*"):
            identifier = re.split(r"-\d+\.", path.name.lower())[0]
            if identifier in VSCODE:
                yield VSCODE[identifier]


def _in_vim() -> Iterator[str]:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "nvim"
    windows = Path(os.environ.get("LOCALAPPDATA") or data) / "nvim-data"
    for root in (data, windows, Path.home() / ".vim"):
        for folder in VIM_FOLDERS:
            yield from (path.name for path in root.glob(f"{folder}/*") if path.name in VIM)
