"""`mercury-lsp serve`: runs the daemon, one process that holds the model for many editors, and its HTTP API."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mercury_kernels.installation import install_command

from mercury_lsp import default_model, private_files
from mercury_lsp.commands.terminal import number
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import Address, TcpAddress, UnixAddress, default_address
from mercury_lsp.errors import DaemonError, UsageError
from mercury_lsp.relay.join import take_turn
from mercury_lsp.settings import Settings
from mercury_lsp.transport import standard_streams
from mercury_lsp.transport.standard_streams import end_at_once

if TYPE_CHECKING:
    from mercury_lsp.engine_host.loading import LoadEngine
    from mercury_lsp.http.listener import HttpListener


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_address_arguments(parser)
    parser.add_argument(
        "--idle-exit",
        type=number(float, 0, 1_000_000),
        metavar="MINUTES",
        help="stop after this long without an editor (default: never)",
    )
    parser.add_argument("--stop", action="store_true", help="stop the running one")
    parser.add_argument(
        "--http",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help="also serve HTTP (default: 127.0.0.1:8012; another host needs MERCURY_TOKEN)",
    )
    parser.add_argument("--model", metavar="MODEL", help="with --http: its model (default: the one that editors use)")


def add_address_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the daemon's address; the relay takes them as well."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--socket", type=Path, metavar="PATH", help="a Unix socket (default: one for this version)")
    group.add_argument(
        "--tcp",
        type=number(int, 0, 65_535),
        metavar="PORT",
        help="a port on the loopback interface; 0 picks a free one",
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="with --tcp: holds the port and the token")


def address_of(arguments: argparse.Namespace) -> Address:
    """The address that the arguments name, or the default one. Raises UsageError and DaemonError."""
    if (arguments.tcp is None) != (arguments.token_file is None):
        raise UsageError("--tcp and --token-file go together")
    if arguments.tcp is not None:
        return TcpAddress(_absolute(arguments.token_file), arguments.tcp)
    if arguments.socket is not None:
        return UnixAddress(_absolute(arguments.socket))
    return default_address()


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except FileNotFoundError:
        raise UsageError(f"{path} is in the current folder, which was removed; give the absolute path") from None


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped, or stop the daemon that is running."""
    address = address_of(arguments)
    if arguments.stop:
        sys.stderr.write("stopped\n" if control.stop(address) else "none was running\n")
        return 0
    idle, http = arguments.idle_exit, None
    if arguments.http is not None:
        if idle is not None:
            raise UsageError("--http serves until it is stopped; leave out --idle-exit")
        http = http_listener(arguments.http, arguments.model)
    elif arguments.model is not None:
        raise UsageError("--model needs --http; mercury-lsp models use chooses the model of editors")
    if not serve(address, None if idle is None else idle * 60, http=http):
        sys.stderr.write(f"mercury-lsp: another is already running at {address.path}\n")
        return control.ALREADY_RUNNING
    return end_at_once(0)


def http_listener(address: str, model: str | None) -> "HttpListener":
    """The HTTP listener. Raises ModelNotFound, and UsageError if, among others, a package is missing."""
    from mercury_engine.loading import find_model  # a slow import

    try:
        from mercury_lsp.http.listener import HttpAddress, HttpListener
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: {install_command('http')}") from None
    section = {"engine": None, "editModel": default_model.read(edits=True)}  # a URL may name this very server
    if model is not None:
        section["model"] = default_model.named(model)
    settings = Settings.parse(default_model.added_to(section))
    find_model(settings.model)
    return HttpListener(HttpAddress.parse(address), settings)


def serve(
    address: Address, idle_seconds: float | None, load: "LoadEngine | None" = None, http: "HttpListener | None" = None
) -> bool:
    """Serve until stopped; False if another daemon has the address. With `http` it replaces one that an editor started.

    Listens before importing anything slow, so that an editor starting meanwhile waits instead of starting a daemon.
    """
    path, turn = control.lock_path(address), None
    try:
        if http is not None:
            turn = take_turn(address)  # editors connect to this daemon once it is released
            if private_files.signature(path)[1] == control.ON_DEMAND:
                control.stop(address)
        if (taken := private_files.take_lock(path)) is None:
            return False
        private_files.sign(taken, "" if idle_seconds is None else control.ON_DEMAND)
    except OSError as error:
        raise DaemonError(f"cannot lock {path}: {error}; choose another path with --socket") from error
    listening, key = address.listen()
    if turn is not None:
        os.close(turn)

    import asyncio
    import gc
    import logging
    from contextlib import nullcontext
    from functools import partial

    from mercury_lsp.daemon.server import Daemon
    from mercury_lsp.engine_host.loading import load_engine
    from mercury_lsp.server.logs import RedactingFormatter

    standard_streams.forgive()
    # A full garbage collection over the imported modules took 30 ms, and every editor waited.
    gc.collect()
    gc.freeze()

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])

    async def main() -> None:
        has_address = partial(private_files.is_current, taken, path)
        daemon = Daemon(address, load or load_engine, idle_seconds, has_address)
        async with http.serving(daemon.engines) if http is not None else nullcontext():
            await daemon.run(listening, key)

    asyncio.run(main())
    return True
