"""A real headless Neovim with the plugin, over the real server or a scripted one."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLUGIN = HERE.parents[1] / "editors" / "nvim"
WAIT_S = 30.0
POLL_S = 0.03
REST_MS = 1_000
MODEL_WAIT_S = 300.0

LISTEN = r"""
local pipe = vim.uv.new_pipe(false)
assert(pipe:bind(%s))
pipe:listen(8, function()
  local caller, read = vim.uv.new_pipe(false), ""
  pipe:accept(caller)
  caller:read_start(function(_, data)
    read = read .. (data or "")
    local line, rest = read:match("^([^\n]*)\n(.*)$")
    if not line then
      return data or caller:close()
    end
    read = rest
    vim.schedule(function()
      local done, value = pcall(function()
        return vim.json.encode({ assert(loadstring(vim.json.decode(line)))() })
      end)
      caller:write(vim.json.encode({ done, value }) .. "\n")
    end)
  end)
end)
"""
"""Runs each line that a caller sends, a Lua chunk as JSON, once all keys before it are used up."""

GHOST = """
local namespace = vim.api.nvim_create_namespace("%s")
local shown, below = "", ""
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
  for _, chunk in ipairs(mark[4].virt_text or {}) do shown = shown .. chunk[1] end
  for _, line in ipairs(mark[4].virt_lines or {}) do
    below = below .. "\\n"
    for _, chunk in ipairs(line) do below = below .. chunk[1] end
  end
end
return shown .. below
"""


PAINTED = """
local at_cursor, below = {}, {}
local namespace = vim.api.nvim_create_namespace("mercury")
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
  vim.list_extend(at_cursor, mark[4].virt_text or {})
  for _, line in ipairs(mark[4].virt_lines or {}) do vim.list_extend(below, line) end
end
return vim.list_extend(at_cursor, below)
"""


def find_nvim() -> str | None:
    beside_python = Path(sys.executable).parent / "nvim"
    return str(beside_python) if beside_python.exists() else shutil.which("nvim")


def find_nvim_0_12() -> str | None:
    """No package index has Neovim 0.12; the variable NVIM_0_12 names a binary, or the one on the PATH is new enough."""
    for binary in (os.environ.get("NVIM_0_12"), shutil.which("nvim"), find_nvim()):
        version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout if binary else ""
        if (found := re.match(r"NVIM v(\d+)\.(\d+)", version)) and (int(found[1]), int(found[2])) >= (0, 12):
            return binary
    return None


def until(what: Callable[[], Any], wait_s: float = WAIT_S) -> Any:
    """The first true value of `what`; fails with its last value."""
    deadline = time.monotonic() + wait_s
    while not (value := what()):
        assert time.monotonic() < deadline, f"waited in vain; the last value was {value!r}"
        time.sleep(POLL_S)
    return value


def screen(drawn: bytearray) -> int:
    """A terminal of 80 columns; what is drawn on it is appended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def drain() -> None:
        with contextlib.suppress(OSError):  # the other end is gone
            while part := os.read(ours, 1 << 16):
                drawn.extend(part)

    threading.Thread(target=drain, daemon=True).start()
    return theirs


class Neovim:
    """A Neovim with the plugin, spoken to over its socket; headless, or on a screen."""

    def __init__(
        self, binary: str, folder: Path, cmd: list[str], options: str = "", before: str = "", has_screen: bool = False
    ) -> None:
        self.binary = binary
        self.sockets = tempfile.TemporaryDirectory(prefix="nv")  # a socket's path has at most 107 characters
        self.socket = f"{self.sockets.name}/s"
        init = folder / "init.lua"
        command = ", ".join(json.dumps(part) for part in cmd)
        init.write_text(
            f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
            "vim.o.swapfile = false\n"
            "vim.g.loaded_python3_provider = 0\n"  # or each Neovim looks for Pythons: a second of processor time
            f"{LISTEN % json.dumps(self.socket)}\n"
            f"{before}\n"
            f"require('mercury').setup({{ cmd = {{ {command} }}, debounce_ms = 10, {options} }})\n"
        )
        env = os.environ | {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("STATE", "DATA", "CACHE")}
        self.drawn = bytearray()
        """What was sent to the screen, if there is one."""
        terminal = screen(self.drawn) if has_screen else subprocess.DEVNULL
        how = [] if has_screen else ["--headless"]
        self.process = subprocess.Popen(
            [binary, *how, "--clean", "-u", str(init)],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=env | {"TERM": "xterm-256color"},
        )
        if has_screen:
            os.close(terminal)
        self._connection = until(self._connected)
        self._answers = self._connection.makefile(encoding="utf-8")

    def _connected(self) -> socket.socket | None:
        """A connection, once Neovim listens."""
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(WAIT_S)
            made.connect(self.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            made.close()
            return None
        return made

    def lua(self, code: str) -> Any:
        """What a Lua chunk returns."""
        self._connection.sendall(json.dumps(code).encode() + b"\n")
        is_done, answer = json.loads(self._answers.readline())
        assert is_done, answer
        values = json.loads(answer)
        return values[0] if values else None

    def open(self, path: Path, text: str = "") -> None:
        path.write_text(text, encoding="utf-8")
        self.lua(f"vim.cmd.edit({json.dumps(str(path))})")

    def attached(self) -> bool:
        return self.lua("local c = require('mercury.client').get(0); return c ~= nil and c.initialized == true")

    def keys(self, keys: str) -> None:
        """Press keys, in the notation of `:help key-notation`; they are used up before `lua` runs again."""
        self.lua(f"vim.api.nvim_input({json.dumps(keys, ensure_ascii=False)})")

    def rest(self) -> None:
        """Let pass the pauses after which the plugin asks or says something."""
        self.lua(f"_G.rested = false vim.defer_fn(function() _G.rested = true end, {REST_MS})")
        until(lambda: self.lua("return rested"))

    def ghost(self, namespace: str = "mercury") -> str:
        """The text drawn under a namespace, as it stands on the screen."""
        return self.lua(GHOST % namespace)

    def painted(self) -> list[tuple[str, str]]:
        """The plugin's text, in pieces with their highlight groups."""
        return [(text, group) for text, group in self.lua(PAINTED)]

    def read_all_replies(self) -> None:
        """Replies come in order: after the answer to one more request, all before it have been handled."""
        self.lua("require('mercury.client').get(0):request_sync('workspace/executeCommand', {}, 9999)")

    def lines(self) -> list[str]:
        return self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(WAIT_S)
        self._answers.close()
        self._connection.close()
        self.sockets.cleanup()


class Desk:
    """A Neovim over the scripted server, with the server's rules and log at hand."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary = binary
        self.folder = folder
        self.rules = folder / "rules.json"
        self.log = folder / "log.jsonl"
        self.log.touch()
        self.script([])
        self.nvim: Neovim | None = None

    @property
    def cmd(self) -> list[str]:
        return [sys.executable, str(HERE / "scripted_server.py"), str(self.rules), str(self.log)]

    def script(self, rules: list[dict[str, Any]]) -> None:
        whole = self.rules.with_suffix(".new")
        whole.write_text(json.dumps(rules), encoding="utf-8")
        whole.replace(self.rules)

    def start(
        self,
        text: str = "",
        options: str = "",
        before: str = "",
        name: str = "a.py",
        cmd: list[str] | None = None,
        has_screen: bool = False,
    ) -> Neovim:
        self.nvim = Neovim(self.binary, self.folder, cmd or self.cmd, options, before, has_screen)
        self.nvim.open(self.folder / name, text)
        return self.nvim

    def start_attached(self, *args: Any, **named: Any) -> Neovim:
        nvim = self.start(*args, **named)
        until(nvim.attached)
        return nvim

    def received(self, method: str) -> list[dict[str, Any]]:
        messages = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [message for message in messages if message.get("method") == method]

    def say(self, method: str, params: Any) -> None:
        """Have the server send a notification."""
        assert self.nvim is not None
        message = json.dumps({"method": method, "params": params})
        self.nvim.lua(f"require('mercury.client').get():notify('$/test/say', vim.json.decode({json.dumps(message)}))")

    def answered(self) -> list[int]:
        messages = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [message["answered"] for message in messages if "answered" in message]

    def answered_last(self) -> bool:
        asked = self.asked()
        return bool(asked) and asked[-1]["id"] in self.answered()

    def asked(self) -> list[dict[str, Any]]:
        return self.received("textDocument/inlineCompletion")


def rule(before: str, text: str, **more: Any) -> dict[str, Any]:
    return {"before": before, "result": {"items": [{"insertText": text}]}, **more}


def span(line: int, first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}}


def shows(nvim: Neovim, text: str) -> None:
    until(lambda: nvim.ghost() == text)
