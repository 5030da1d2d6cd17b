"""The address at which a daemon listens, and who may connect.

A Unix socket and its folder are private by their modes. Without Unix sockets the daemon listens on the loopback
interface, which every user can reach, and a token proves who may connect. The token and the port are in a file that
only its owner can read.

The name contains the version and a digest of the installation path, so that two versions never meet by accident.
"""

import os
import socket
import stat
import struct
import sys
from binascii import crc32
from pathlib import Path
from typing import NamedTuple

import mercury_lsp
from mercury_lsp import private_files
from mercury_lsp.errors import DaemonError

TOKEN_BYTES = 32

LOOPBACK = "127.0.0.1"

BACKLOG_CONNECTIONS = 64

CONNECT_SECONDS = 2.0

NO_KEY = b""
"""The key for a socket that other users cannot reach."""


class UnixAddress(NamedTuple):
    """A socket in the file system."""

    path: Path

    @property
    def arguments(self) -> list[str]:
        """The options that make `mercury-lsp serve` listen here."""
        return ["--socket", str(self.path)]

    def connect(self) -> tuple[socket.socket, bytes]:
        """A connection and the key that both sides know. Raises OSError if nobody listens."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(str(self.path))
        except BaseException:
            connection.close()
            raise
        return connection, NO_KEY

    def listen(self) -> tuple[socket.socket, bytes]:
        """A listening socket. Call it with the lock held: it removes the socket of a daemon that crashed."""
        if os.path.lexists(self.path) and not stat.S_ISSOCK(self.path.lstat().st_mode):  # it may be the user's file
            raise DaemonError(f"{self.path} exists and is not a socket; choose another path with --socket")
        self.path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listening.bind(str(self.path))
        except OSError as error:  # also if the path is longer than about 100 bytes
            raise DaemonError(f"cannot listen on {self.path}: {error}; choose another path with --socket") from error
        finally:
            os.umask(before)
        listening.listen(BACKLOG_CONNECTIONS)
        return listening, NO_KEY


class TcpAddress(NamedTuple):
    """A port of the loopback interface; the file holds the port and the token."""

    path: Path
    port: int = 0
    """0: any free port."""

    @property
    def arguments(self) -> list[str]:
        """The options that make `mercury-lsp serve` listen here."""
        return ["--tcp", str(self.port), "--token-file", str(self.path)]

    def connect(self) -> tuple[socket.socket, bytes]:
        """A connection and the key that both sides know. Raises OSError if nobody listens."""
        try:
            port, token = self.path.read_text(encoding="ascii").split()
            number, key = int(port), bytes.fromhex(token)
        except ValueError as error:
            raise OSError(f"{self.path} does not hold a port and a token") from error
        return socket.create_connection((LOOPBACK, number), CONNECT_SECONDS), key

    def listen(self) -> tuple[socket.socket, bytes]:
        """A listening socket, with a new token. Call it with the lock held."""
        listening = socket.socket(socket.AF_INET)
        if sys.platform != "win32":  # on Windows the option would let two processes share the port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, self.port))
        except OSError as error:
            raise DaemonError(f"cannot listen on port {self.port}: {error}; choose another port with --tcp") from error
        listening.listen(BACKLOG_CONNECTIONS)
        key = os.urandom(TOKEN_BYTES)
        self._write(listening.getsockname()[1], key)
        return listening, key

    def _write(self, port: int, key: bytes) -> None:
        """Write under a new name, then rename, so that nobody reads half a file or follows a link in its place."""
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{port} {key.hex()}\n")
            new.replace(self.path)
        except OSError as error:
            raise DaemonError(f"cannot write {self.path}: {error}; choose another path with --token-file") from error


Address = UnixAddress | TcpAddress


def default_address() -> Address:
    """The address of this user's daemon of this version. Raises DaemonError without a private folder."""
    folder = runtime_folder()
    if sys.platform == "win32":
        return TcpAddress(folder / f"{build()}.token")
    return UnixAddress(folder / f"{build()}.sock")


def all_addresses() -> list[Address]:
    """Addresses where a daemon of any version may run."""
    found = sorted(runtime_folder().iterdir())
    unix: list[Address] = [UnixAddress(each) for each in found if each.suffix == ".sock"]
    return unix + [TcpAddress(each) for each in found if each.suffix == ".token"]


def build() -> str:
    """The version and a digest of the installation path."""
    installed = str(Path(mercury_lsp.__file__).resolve().parent)
    return f"{mercury_lsp.__version__}-{crc32(os.fsencode(installed)):08x}"


def runtime_folder() -> Path:
    """This user's private folder, created if missing. Raises DaemonError if it is not private or cannot be created."""
    try:
        if sys.platform == "win32":
            folder = Path(os.environ.get("LOCALAPPDATA") or _temporary_folder()) / "mercury-lsp"
        elif runtime := _folder_of("XDG_RUNTIME_DIR"):
            folder = runtime / "mercury-lsp"
        else:
            folder = Path(_temporary_folder()) / f"mercury-lsp-{os.getuid()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32":
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
                raise DaemonError(f"{folder} is not a private folder of yours; remove it, or set XDG_RUNTIME_DIR")
    except OSError as error:
        raise DaemonError(
            f"no folder for the socket: {error}; set XDG_RUNTIME_DIR to a private folder of yours"
        ) from error
    return folder


def log_file(address: Address) -> Path:
    """The log of the daemon at an address, if it has no terminal. Raises OSError."""
    state = _folder_of("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME")
    folder = (state or Path.home() / ".local" / "state") / "mercury-lsp"
    private_files.make_folder(folder)
    return folder / f"{address.path.stem}.log"


def is_same_user(connection: socket.socket) -> bool:
    """Whether this user is at the other end, as far as the system tells; on TCP the token decides instead."""
    if sys.platform != "linux" or connection.family != socket.AF_UNIX:
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return bool(user == os.getuid())


def _temporary_folder() -> str:
    import tempfile  # 2 MB

    return tempfile.gettempdir()


def _folder_of(variable: str) -> Path | None:
    """The folder in an environment variable; ignored if relative, as XDG requires: a daemon changes its folder."""
    folder = Path(os.environ.get(variable, ""))
    return folder if folder.is_absolute() else None
