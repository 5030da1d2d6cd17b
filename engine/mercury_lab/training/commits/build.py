"""Collect real edits from the commits of permissively licensed repositories.

`python -m mercury_lab.training commits --mirror DIR --held-out DIR --out DIR` reads the bare clones below the
mirror and writes {training,validation,test}.jsonl.gz (see commit_edit) and manifest.json. The split is by repository.
The same clones give the same bytes. Files with text of the held-out folder are left out.
"""

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from mercury_engine.lru import LeastRecentlyUsed
from rich.progress import track

from mercury_lab.training.commits import commit_edit, repositories
from mercury_lab.training.commits.commit_edit import CommitEdit, CommitFile, Step, replace_file
from mercury_lab.training.commits.history import Blobs, Commit, FileHunks, commits, hunks_of
from mercury_lab.training.commits.repositories import SPLITS, Repository
from mercury_lab.training.commits.selection import CODE_SUFFIXES, code_files, commit_fault, steps_fault, steps_of
from mercury_lab.training.data import filters, sources
from mercury_lab.training.data.contamination import Fingerprints, digest
from mercury_lab.training.data.selection import source_files
from mercury_lab.training.data.sources import SourceError

OPEN_FILES = 4
"""Other files stored with each edit: those that the commits before it changed last."""

CACHED_FILES = 2_000

TRIED_PER_KEPT = 3
"""Commits examined for each one wanted; about every second one is dropped when its text is read."""

ONE_STEP_SHARE = 0.25
"""Largest share of edits with a single step, which only serve as finished edits."""


@dataclass(slots=True)
class Collector:
    """Reads repositories one by one; `dropped` counts the reasons for commits that are left out."""

    known: Fingerprints | None
    limit: int
    dropped: Counter[str] = field(default_factory=Counter)
    _seen: set[bytes] = field(default_factory=set)
    _judged: LeastRecentlyUsed[tuple[str, str], tuple[CommitFile | None, str]] = field(
        default_factory=lambda: LeastRecentlyUsed(CACHED_FILES)
    )

    def collect(self, repository: Repository, folder: Path) -> list[CommitEdit]:
        """Up to `limit` edits of a repository, oldest first."""
        chosen, open_files = self._choose(repository, folder)
        found: list[CommitEdit] = []
        single = 0
        with Blobs(folder) as blobs:
            for commit, hunks in self._with_hunks(folder, sorted(chosen, key=_rank)):
                if len(found) == self.limit:
                    break
                edit = self._edit(repository, commit, hunks, open_files[commit.id], blobs)
                if edit is None or (len(edit.steps) == 1 and single >= ONE_STEP_SHARE * self.limit):
                    continue
                single += len(edit.steps) == 1
                found.append(edit)
        ages = {commit.id: age for age, commit in enumerate(chosen)}
        return sorted(found, key=lambda edit: ages[edit.commit])

    def _with_hunks(self, folder: Path, chosen: Sequence[Commit]) -> Iterator[tuple[Commit, list[FileHunks]]]:
        """The commits with their hunks, which git is asked for as they are needed."""
        for start in range(0, len(chosen), self.limit):
            batch = chosen[start : start + self.limit]
            hunks = hunks_of(folder, [commit.id for commit in batch], CODE_SUFFIXES)
            for commit in batch:
                yield commit, hunks.get(commit.id, [])

    def _choose(self, repository: Repository, folder: Path) -> tuple[list[Commit], dict[str, list[tuple[str, str]]]]:
        """Commits worth reading, oldest first, and the path and blob of the files changed last before each."""
        held_names = sources.load().held_names
        likely, recent = [], dict[str, dict[str, str]]()
        last: dict[str, str] = {}
        for commit in commits(folder, repository.commit):
            fault = commit_fault(commit, held_names)
            if fault:
                self.dropped[fault] += 1
            else:
                likely.append(commit)
                own = {file.path for file in commit.files}
                recent[commit.id] = {path: last[path] for path in list(last)[::-1] if path not in own}
            for file in (commit.files[n] for n in code_files(commit)):
                last.pop(file.path, None)
                if file.status != "D":
                    last[file.path] = file.after
            while len(last) > 3 * OPEN_FILES:
                del last[next(iter(last))]
        chosen = sorted(likely, key=_rank)[: TRIED_PER_KEPT * self.limit]
        kept = {commit.id for commit in chosen}
        return [commit for commit in likely if commit.id in kept], {name: [*recent[name].items()] for name in kept}

    def _edit(
        self,
        repository: Repository,
        commit: Commit,
        hunks: Sequence[FileHunks],
        open_files: Sequence[tuple[str, str]],
        blobs: Blobs,
    ) -> CommitEdit | None:
        """The edit of a commit; None, with the reason counted, if it is not worth learning."""
        by_blobs = {(entry.before, entry.after): entry.hunks for entry in hunks}
        files, steps = list[CommitFile](), list[Step]()
        for entry in (commit.files[n] for n in code_files(commit)):
            found = by_blobs.get((entry.before, entry.after))
            old = self._file(entry.path, entry.before, blobs)
            new = blobs.read(entry.after) if old and found else None
            text = filters.text_of(new, old.language) if old and new is not None else None
            if old is None or found is None or text is None:
                return None
            steps += steps_of(len(files), found, text)
            files.append(old)
        fault = steps_fault(steps, [file.text for file in files]) or self._repeated(steps)
        if fault:
            self.dropped[fault] += 1
            return None
        others = (self._file(path, blob, blobs, counted=False) for path, blob in open_files)
        kept = [*islice((file for file in others if file is not None), OPEN_FILES)]
        return CommitEdit(repository.name, commit.id, (*files, *kept), len(files), tuple(steps))

    def _file(self, path: str, blob: str, blobs: Blobs, *, counted: bool = True) -> CommitFile | None:
        """The file, or None, with the reason counted, if its text must not be trained on."""
        file, fault = self._judged.get_or_make((path, blob), lambda: self._judge(path, blobs.read(blob)))
        if file is None and counted:
            self.dropped[fault] += 1
        return file

    def _judge(self, path: str, content: bytes | None) -> tuple[CommitFile | None, str]:
        """The file, or None and the reason."""
        language = filters.language_of(path, content or b"")
        text = filters.text_of(content, language) if content is not None and language else None
        if text is None or language is None:
            return None, "large or not UTF-8"
        fault = filters.path_fault(path, language) or filters.text_fault(text)
        fault = fault or (self.known.fault(text) if self.known else None)
        return (None, fault) if fault else (CommitFile(path, language, text), "")

    def _repeated(self, steps: Sequence[Step]) -> str | None:
        """Why the steps are dropped if an earlier commit had the same ones: commits are picked to other branches."""
        key = digest("\n".join(f"{step.start} {step.text}" for step in steps))
        if key in self._seen:
            return "duplicate"
        self._seen.add(key)
        return None


def _rank(commit: Commit) -> bytes:
    return hashlib.sha256(commit.id.encode()).digest()


def build(listed: Sequence[Repository], mirror: Path, held_out: Path, folder: Path, limit: int) -> dict[str, object]:
    """Write the edits of all listed repositories and return the manifest; raises SourceError."""
    texts = [file.text for file in source_files(held_out)]
    if not texts:
        raise SourceError(f"no source files in {held_out}; get them with `mercury_lab.training held-out`")
    known = Fingerprints.of(texts)
    folder.mkdir(parents=True, exist_ok=True)
    collector, rows = Collector(known, limit), list[dict[str, object]]()
    for split in SPLITS:
        edits: list[CommitEdit] = []
        of_split = [each for each in listed if each.split == split]
        for repository in track(of_split, f"Reading {split}", disable=not of_split):
            found = collector.collect(repository, repository.folder(mirror))
            rows.append(asdict(repository) | _totals(found))
            edits += found
        commit_edit.write(folder / f"{split}.jsonl.gz", edits)
    manifest: dict[str, object] = {"repositories": rows, "dropped": dict(sorted(collector.dropped.items()))}
    replace_file(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    return manifest


def _totals(edits: Sequence[CommitEdit]) -> dict[str, object]:
    languages = Counter(edit.language for edit in edits)
    return {"edits": len(edits), "steps": sum(len(edit.steps) for edit in edits), "languages": dict(languages)}


def read_split(folder: Path, split: str) -> Iterator[CommitEdit]:
    """The edits of a split, repository by repository; raises SourceError."""
    return commit_edit.read(folder / f"{split}.jsonl.gz")


def main(argv: list[str] | None = None) -> int:
    """Collect the edits and print their number by repository and the reasons for dropped commits."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training commits", description=__doc__)
    parser.add_argument("--repositories", type=Path, default=repositories.REPOSITORIES_FILE, help="list (TOML)")
    parser.add_argument("--mirror", type=Path, required=True, help="folder of bare clones, OWNER+NAME[/repo]")
    parser.add_argument("--held-out", type=Path, required=True, help="folder that `held-out` wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for the edits")
    parser.add_argument("--limit", type=int, default=400, help="most edits per repository (default: 400)")
    options = parser.parse_args(argv)
    listed = repositories.load(options.repositories)
    manifest = build(listed, options.mirror, options.held_out, options.out, options.limit)
    print(json.dumps(manifest, indent=1))
    return 0
