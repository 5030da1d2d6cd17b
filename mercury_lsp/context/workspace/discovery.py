"""Finds the source files below workspace folders, entry by entry, so that the caller can rest in between."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from mercury_lsp.context.workspace.ignored import IgnoreRules
from mercury_lsp.context.workspace.imports import READ_LANGUAGES
from mercury_lsp.documents.languages import language_of


@dataclass(frozen=True, slots=True)
class DiscoveredPath:
    """A folder to look into, or a file that may be opened."""

    path: str
    is_folder: bool = False


def discover(rules: IgnoreRules, start: str | None = None) -> Iterator[DiscoveredPath | None]:
    """Paths below the root, or below `start`; None for entries that are skipped. Links are not followed."""
    pending = [start or rules.root]
    while pending:
        folder = pending.pop()
        if not rules.allows_folder(folder):
            yield None
            continue
        yield DiscoveredPath(folder, is_folder=True)
        try:
            entries = os.scandir(folder + "/")
        except OSError:
            continue
        with entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if _is(entry, folder=True):
                    pending.append(path)
                elif language_of(entry.name) in READ_LANGUAGES and _is(entry, folder=False) and rules.allows(path):
                    yield DiscoveredPath(path)
                    continue
                yield None


def _is(entry: os.DirEntry[str], folder: bool) -> bool:
    """Whether an entry is a folder, or else a file, and not a link."""
    try:
        return entry.is_dir(follow_symlinks=False) if folder else entry.is_file(follow_symlinks=False)
    except OSError:
        return False
