"""Take a picture of the ghost text in a real Neovim, inside tmux.

    python docs/capture_neovim.py [SERVER COMMAND...]

Types the start of a function, waits until ghost text is drawn, and writes `neovim.ansi` and `neovim.svg`
beside this file. Without a command the server is `mercury-lsp`. Needs tmux, Neovim and rich.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

DOCS = Path(__file__).parent
PLUGIN = DOCS.parent / "editors" / "nvim"
COLUMNS, ROWS = 80, 16
WAIT_S = 300.0
SOCKET = ["tmux", "-L", "mercury-capture"]

BACKGROUND, FOREGROUND = (28, 28, 28), (188, 188, 188)  # of the colour scheme habamax
THEME = TerminalTheme(BACKGROUND, FOREGROUND, [FOREGROUND] * 16)  # habamax itself uses no palette colours

OPENED = '''\
def celsius_to_fahrenheit(celsius):
    """Convert degrees Celsius to degrees Fahrenheit."""
    return celsius * 9 / 5 + 32


'''
TYPED = "def fahrenheit_to_celsius("

INIT = """\
vim.opt.runtimepath:prepend(%s)
vim.opt.swapfile = false
vim.opt.shadafile = "NONE"
vim.opt.termguicolors = true
vim.opt.background = "dark"
vim.opt.number = true
vim.opt.fillchars = { eob = " " }
vim.cmd.colorscheme("habamax")
require("mercury").setup({ cmd = vim.json.decode(%s) })
"""

# Written to the window's title, where tmux can read them without a second connection to Neovim.
REPORT = """\
vim.opt.title = true
vim.uv.new_timer():start(0, 50, vim.schedule_wrap(function()
  local client = require("mercury.client").get()
  local marks = vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace("mercury"), 0, -1, {})
  vim.o.titlestring = #marks > 0 and "shown" or client and client.initialized and "attached" or "starting"
end))
"""


def tmux(*args: str) -> str:
    return subprocess.run([*SOCKET, *args], check=True, capture_output=True, encoding="utf-8").stdout


def wait_for_title(title: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while tmux("display-message", "-p", "#{pane_title}").strip() != title:
        if time.monotonic() > deadline:
            sys.exit(f"Neovim did not get to {title!r} in {WAIT_S:.0f} s:\n{tmux('capture-pane', '-p')}")
        time.sleep(0.1)


def find_nvim() -> str:
    beside_python = Path(sys.executable).parent / "nvim"
    found = str(beside_python) if beside_python.exists() else shutil.which("nvim")
    return found or sys.exit("no nvim beside this Python or on the PATH")


def capture(server: list[str], folder: Path) -> str:
    """The screen with the ghost text, with its colours as escape sequences."""
    source, init = folder / "temperature.py", folder / "init.lua"
    source.write_text(OPENED)
    init.write_text(INIT % (json.dumps(str(PLUGIN)), json.dumps(json.dumps(server))) + REPORT)
    command = [find_nvim(), "--clean", "-u", str(init), source.name]
    tmux(
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-x",
        str(COLUMNS),
        "-y",
        str(ROWS),
        "-c",
        str(folder),
        *command,
    )
    try:
        tmux("set-option", "-ga", "terminal-features", ",*:RGB")
        wait_for_title("attached")
        tmux("send-keys", "G", "i")
        tmux("send-keys", "-l", TYPED)
        wait_for_title("shown")
        time.sleep(0.5)  # for the terminal to draw what Neovim has sent
        return tmux("capture-pane", "-e", "-p")
    finally:
        tmux("kill-server")


def render(ansi: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(ansi.rstrip("\n")))
    return console.export_svg(title="Neovim", theme=THEME)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ansi = capture(sys.argv[1:] or ["mercury-lsp"], Path(folder))
    (DOCS / "neovim.ansi").write_text(ansi)
    (DOCS / "neovim.svg").write_text(render(ansi))


if __name__ == "__main__":
    main()
