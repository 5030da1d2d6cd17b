"""Fetch Debian packages with apt, and read the files inside.

Source packages need an index that most machines do not keep. It is fetched once, into a folder beside the archives,
from the servers of this machine's own Debian packages; the system's apt is not changed.
"""

import re
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

INDEX_FOLDER = ".index"
INDEX_SECONDS = 600

_INDEX_LOCK = threading.Lock()

_INSTALLED_ROOT = re.compile(
    r"usr/(?:share/gocode/src|share/go-[\d.]+/src|share/cargo/registry/[^/]+|share/lua/5\.\d|include|src|share|lib|bin"
    r"|libexec)/"
)


def fetch_binary(name: str, version: str) -> tuple[str, ...]:
    """The command that downloads a package's archive into the working folder."""
    return "apt-get", "download", "--quiet", f"{name}={version}"


def fetch_source(name: str, version: str, archives: Path) -> tuple[str, ...]:
    """The command that downloads a source package's archives into the working folder; fetches the index if needed."""
    with _INDEX_LOCK:
        options = _index(archives)
    return "apt-get", *options, "source", "--quiet", "--download-only", f"{name}={version}"


def _index(archives: Path) -> tuple[str, ...]:
    """apt's options for the index of source packages below `archives`, which is fetched if missing."""
    folder = (archives / INDEX_FOLDER).resolve()
    entries, lists, cache = folder / "entries.list", folder / "lists", folder / "cache"
    places = {"Etc::SourceList": entries, "Etc::SourceParts": "/dev/null", "State::Lists": lists, "Cache": cache}
    options = [f"-oDir::{key}={value}" for key, value in places.items()]
    if not entries.is_file():
        for partial_folder in (lists / "partial", cache / "archives" / "partial"):
            partial_folder.mkdir(parents=True, exist_ok=True)
        show = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
        targets = ("apt-get", "indextargets", "--format", show, "Created-By: Packages", "Origin: Debian")
        known = subprocess.run(targets, capture_output=True, check=True, text=True, timeout=INDEX_SECONDS).stdout
        partial = entries.with_suffix(".partial.list")
        partial.write_text("".join(f"{line}\n" for line in sorted(set(known.splitlines()))))
        update = [option.replace(str(entries), str(partial)) for option in options]
        subprocess.run(("apt-get", *update, "update"), capture_output=True, check=True, timeout=INDEX_SECONDS)
        partial.rename(entries)
    return tuple(options)


def keep_original(folder: Path) -> None:
    """Delete Debian's changes and additional components of a fetched source package; keep the authors' archive."""
    archives = sorted(folder.glob("*.tar.*"))
    original = [path for path in archives if re.search(r"\.orig\.tar\.\w+$", path.name)]
    kept = (original or [path for path in archives if ".debian." not in path.name])[:1]
    for path in folder.iterdir():
        if path not in kept:
            path.unlink()


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
