"""Fetch Debian packages with apt, and read the files inside."""

import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

_INSTALLED_ROOT = re.compile(
    r"usr/(?:share/gocode/src|share/go-[\d.]+/src|share/cargo/registry/[^/]+|share/lua/5\.\d|include|src|share|lib|bin"
    r"|libexec)/"
)


def fetch_binary(name: str, version: str) -> tuple[str, ...]:
    """The command that downloads a package's archive into the working folder."""
    return "apt-get", "download", "--quiet", f"{name}={version}"


def tar_files(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Path and content of every regular file, in archive order."""
    for member in tar:
        stream = tar.extractfile(member) if member.isreg() else None
        if stream is not None:
            yield member.name.removeprefix("./"), stream.read()


def installed_files(name: str, archive: Path) -> Iterator[tuple[str, bytes]]:
    """Files of a binary package by path below its installation root; Rust crates lose librust- and -dev."""
    crate = re.fullmatch(r"librust-(.+)-dev", name)
    prefix = "" if name.startswith("golang-") else f"{crate[1] if crate else name}/"
    with subprocess.Popen(("dpkg", "--fsys-tarfile", archive), stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            for path, content in tar_files(tar):
                root = _INSTALLED_ROOT.match(path)
                if root and not path.startswith("usr/share/doc/"):
                    yield prefix + path[root.end() :], content
        if process.stdout:
            process.stdout.read()
    if process.returncode:
        raise tarfile.ReadError(f"dpkg cannot read {archive}")
