"""Take pictures of suggestions and next edits in a real Neovim, inside tmux.

    python docs/capture_neovim.py [SERVER COMMAND...]

Writes `neovim.ansi` and `neovim.svg` beside this file: ghost text behind the start of a function. Films the changes of
`capture_vscode.py`, walked to the end by one key: `neovim-rename.gif`.
Without a command the server is this Python's `mercury_lsp`, with the model of the settings. Needs tmux, Neovim, rich,
Pillow and the font DejaVu Sans Mono.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from capture_vscode import RENAMING, save
from PIL import Image
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from terminal import Cursor, draw

DOCS = Path(__file__).parent
PLUGIN = DOCS.parent / "editors" / "nvim"
COLUMNS, FILM_COLUMNS, ROWS = 80, 96, 16
WAIT_S = 90.0
SETTLED_S = 0.5
"""The terminal has drawn by then what Neovim has sent."""

SOCKET = ["tmux", "-L", "mercury-capture"]

BACKGROUND, FOREGROUND = (28, 28, 28), (188, 188, 188)  # of the colour scheme habamax
THEME = TerminalTheme(BACKGROUND, FOREGROUND, [FOREGROUND] * 16)  # habamax itself uses no palette colours

OPENED = '''\
def celsius_to_fahrenheit(celsius):
    """Convert degrees Celsius to degrees Fahrenheit."""
    return celsius * 9 / 5 + 32


'''
TYPED = "def fahrenheit_to_celsius(fa"

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
local function count(namespace)
  return #vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace(namespace), 0, -1, {})
end
vim.uv.new_timer():start(0, 50, vim.schedule_wrap(function()
  local word = require("mercury.status").word
  local state = count("mercury") > 0 and "shown" or count("mercury.next_edits") > 0 and "drawn" or word
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\\n") .. "\\n"
  vim.o.titlestring = ("%s %s %d"):format(state, vim.fn.sha256(text), vim.fn.line("."))
end))
"""

FILMED = """\
vim.cmd("set laststatus=0 noruler noshowcmd noshowmode shortmess+=F")
vim.g.loaded_matchparen = 1
require("mercury").disable()
"""


@dataclass(frozen=True)
class Film:
    """What is filmed: a file, the keys of each change by hand, and how the file must read at the end."""

    name: str
    text: str
    by_hand: Sequence[tuple[str, ...]]
    end: str


FILMS = (
    Film("neovim-rename", RENAMING, [("1G013l", "cw", "kilograms", "Escape")], RENAMING.replace("weight", "kilograms")),
)


def tmux(*args: str) -> str:
    return subprocess.run([*SOCKET, *args], check=True, capture_output=True, encoding="utf-8").stdout


def title() -> list[str]:
    """What Neovim reports: the state, a digest of the text, and the line of the cursor."""
    return tmux("display-message", "-p", "#{pane_title}").split()


def wait_for(what: str, is_true: Callable[[list[str]], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while len(now := title()) != 3 or not is_true(now):
        if time.monotonic() > deadline:
            sys.exit(f"Neovim did not get to {what} in {WAIT_S:.0f} s; it is {now}:\n{tmux('capture-pane', '-p')}")
        time.sleep(0.1)


def find_nvim() -> str:
    beside_python = Path(sys.executable).parent / "nvim"
    found = str(beside_python) if beside_python.exists() else shutil.which("nvim")
    return found or sys.exit("no nvim beside this Python or on the PATH")


@contextmanager
def opened(server: Sequence[str], source: Path, text: str, columns: int = COLUMNS, more: str = "") -> Iterator[None]:
    """A terminal with Neovim in it, once the server is ready."""
    init = source.with_name("init.lua")
    source.write_text(text)
    init.write_text(INIT % (json.dumps(str(PLUGIN)), json.dumps(json.dumps(server))) + more + REPORT)
    command = [find_nvim(), "--clean", "-u", str(init), source.name]
    size = ["-x", str(columns), "-y", str(ROWS)]
    tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(source.parent), *command)
    try:
        tmux("set-option", "-ga", "terminal-features", ",*:RGB")
        wait_for("a loaded model", lambda now: now[0] == "ready")
        yield
    finally:
        tmux("kill-server")
        while subprocess.run([*SOCKET, "has-session"], capture_output=True).returncode == 0:
            time.sleep(0.1)
        time.sleep(SETTLED_S)  # a server that is ending takes no new session


def press(keys: Sequence[str]) -> None:
    for each in keys:
        tmux("send-keys", *([] if each in ("Escape", "Tab") else ["-l"]), each)
        time.sleep(0.2)  # Escape and a key at once would be the key with Alt


def ghost_text() -> str:
    """The screen with ghost text, with its colours as escape sequences."""
    press(["G", "i", TYPED])
    wait_for("ghost text", lambda now: now[0] == "shown")
    time.sleep(SETTLED_S)
    return tmux("capture-pane", "-e", "-p")


def shoot(film: Film) -> Image.Image:
    """The lines of the file as they are shown."""
    time.sleep(SETTLED_S)
    column, row = tmux("display-message", "-p", "#{cursor_x} #{cursor_y}").split()
    size = FILM_COLUMNS, max(text.count("\n") for text in (film.text, film.end))
    return draw(tmux("capture-pane", "-e", "-p"), size, Cursor(int(column), int(row), False), FOREGROUND, BACKGROUND)


def frames(film: Film) -> Iterator[Image.Image]:
    """One frame before the change, and one after every step that is drawn."""
    yield shoot(film)
    press([":Mercury enable\r"])
    *first, last = film.by_hand
    for change in first:
        press(change)
        yield shoot(film)
    press(last)
    end = hashlib.sha256(film.end.encode()).hexdigest()
    while title()[1] != end:
        wait_for("a next edit", lambda now: now[0] == "drawn")
        yield shoot(film)
        before = title()[1:]
        press(["Tab"])
        wait_for("another place or text", lambda now, before=before: now[1:] != before)
    yield shoot(film)


def render(ansi: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(ansi.rstrip("\n")))
    return console.export_svg(title="Neovim", theme=THEME)


def main() -> None:
    server = sys.argv[1:] or [sys.executable, "-m", "mercury_lsp", "--in-process"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(server, folder / "temperature.py", OPENED):
            ansi = ghost_text()
        (DOCS / "neovim.ansi").write_text(ansi)
        (DOCS / "neovim.svg").write_text(render(ansi))
        for film in FILMS:
            with opened(server, folder / "shop.py", film.text, FILM_COLUMNS, FILMED):
                path = save(film.name, images := list(frames(film)))
            sys.stdout.write(f"{path.name}: {len(images)} frames, {path.stat().st_size / 1000:.0f} KB\n")


if __name__ == "__main__":
    main()
