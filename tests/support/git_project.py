"""A git repository in a folder, for tests that read histories."""

import subprocess
from pathlib import Path


class GitProject:
    """A git repository in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._git("init", "--quiet", "--initial-branch=main")

    def commit(self, subject: str, files: dict[str, str | None]) -> str:
        """Write files, delete those without a text, and commit all; returns the commit's id."""
        for path, text in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink() if text is None else file.write_bytes(text.encode())
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message", subject)
        return self.head

    @property
    def head(self) -> str:
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=A Person", "-c", "user.email=person@example.org", "-c", "core.autocrlf=false")
        command = ("git", *identity, "-C", str(self.folder), *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
