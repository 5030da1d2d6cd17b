"""Choose positions in real commits: `python -m mercury_lab.evaluation commit-list --mirror DIR --out FILE`.

It reads all bare clones below the mirror that have commits since a date, a permissive LICENSE, and no part in training
or in the held-out projects; classifies the changes of every commit by shape; and takes positions of all shapes,
languages and repositories in turn. The same clones and `--pinned FILE`, an earlier list with its commits, give the same
list. Half of the repositories, language by language, are held out.
"""

import argparse
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from mercury_engine.text.lines import lines_of

from mercury_lab.commit_edits import candidates
from mercury_lab.commit_edits.candidates import ChangedFile, ChangedFiles
from mercury_lab.commit_edits.changes import ChangedText, changes_of
from mercury_lab.commit_edits.licences import licence_of
from mercury_lab.commit_edits.position import LIST, Position, PositionList, Source, plain, read_list, write_list
from mercury_lab.commit_edits.shapes import MARKUP, SHAPES, SILENCES
from mercury_lab.evaluation import suite
from mercury_lab.training.commits import repositories
from mercury_lab.training.commits.history import Blobs, Commit, FileHunks, commits, git, hunks_of
from mercury_lab.training.commits.selection import BOT
from mercury_lab.training.data import filters, sources
from mercury_lsp.documents.languages import LANGUAGES, language_of

SINCE = "2026-07-01"
WANTED, QUIET = 300, 250

MAX_COMMITS = 200
"""Commits of a repository that are read."""

MAX_FILES = 4
MAX_FILE_CHARS = 60_000
MAX_OF_REPOSITORY = 14
"""Positions of a repository that want an edit, and as many that want silence."""

DATA = frozenset(("json",))
"""Languages whose files are left out: lock files and tables."""


_RELEASE = re.compile(r"\b(?:bump\w*|releases?|version \d|prepare (?:for|next))\b", re.I)


def clones(mirror: Path) -> Iterator[str]:
    """Names of the repositories below a folder, as OWNER/NAME."""
    return (folder.name.replace("+", "/", 1) for folder in sorted(mirror.iterdir()) if "+" in folder.name)


def is_taken(name: str) -> bool:
    """Whether training has used a repository's commits, or another evaluation is held out with it."""
    return name.lower() in _taken() or sources.normalised_name(name.rpartition("/")[2]) in held_names()


@cache
def _taken() -> set[str]:
    return {each.name.lower() for each in repositories.load()} | repositories.refused()


@cache
def held_names() -> frozenset[str]:
    """Names of held-out projects, which are components of no path."""
    return sources.load().held_names


def chosen_sources(mirror: Path, pinned: PositionList | None) -> Iterator[tuple[str, str, str]]:
    """Name, commit and licence of the clones that may serve."""
    fixed = {each.name: each.commit for each in pinned.sources} if pinned else {}
    for name in clones(mirror):
        if is_taken(name) or (fixed and name not in fixed):
            continue
        folder = repositories.folder_of(name, mirror)
        commit = fixed.get(name) or git(folder, "rev-parse", "HEAD").decode().strip()
        licence = licence_of(folder, commit)
        if licence and sources.is_permissive(licence):
            yield name, commit, licence


def changed_files(folder: Path, name: str, commit: str, since: str) -> Iterator[ChangedFiles]:
    """The commits of a clone since a date whose changes can be positions, oldest first."""
    likely = [each for each in commits(folder, commit, since) if _is_likely(each)]
    kept = {each.id for each in sorted(likely, key=lambda each: rank(each.id))[:MAX_COMMITS]}
    likely = [each for each in likely if each.id in kept]
    hunks = hunks_of(folder, [each.id for each in likely])
    with Blobs(folder) as blobs:
        for each in likely:
            if (found := _read(name, each, hunks.get(each.id, []), blobs)) is not None:
                yield found


def _is_likely(commit: Commit) -> bool:
    """Whether a person may have made it, in few files that are code."""
    files = [file for file in commit.files if language_of(file.path) in LANGUAGES.keys() - DATA]
    is_modified = all(file.status == "M" for file in files)
    by_program = BOT.search(commit.author) or _RELEASE.search(commit.subject)
    return 0 < len(files) <= MAX_FILES and is_modified and not by_program


def _read(name: str, commit: Commit, hunks: Sequence[FileHunks], blobs: Blobs) -> ChangedFiles | None:
    by_blobs = {(entry.before, entry.after): entry.hunks for entry in hunks}
    found = list[ChangedFile]()
    for file in commit.files:
        language_id = language_of(file.path)
        own = by_blobs.get((file.before, file.after))
        if language_id not in LANGUAGES.keys() - DATA or not own:
            continue
        if filters.path_fault(file.path, language_id) or sources.held_out_in(file.path, held_names()):
            return None
        contents = blobs.read(file.before), blobs.read(file.after)
        texts = [_text(content) for content in contents if content is not None]
        if len(texts) < 2 or None in texts:
            return None
        before, after = texts
        assert before is not None and after is not None
        lines = lines_of(before), lines_of(after)
        changes = changes_of(len(found), own, *lines)
        changed = tuple(ChangedText.of(change, *lines) for change in changes)
        found.append(ChangedFile(file.path, before, after, changed))
    return ChangedFiles(name, commit.id, tuple(found)) if found else None


def _text(content: bytes) -> str | None:
    """The text, or None if it is large, not UTF-8, generated, minified, or has a secret."""
    try:
        text = plain(content)
    except UnicodeDecodeError:
        return None
    is_fit = len(text) <= MAX_FILE_CHARS and "\0" not in text and "\r" not in text and text.endswith("\n")
    return text if is_fit and not filters.text_fault(text) else None


def candidates_of(found: Sequence[ChangedFiles]) -> tuple[list[Position], list[Position]]:
    """Positions of a repository's commits, one of a shape and commit: those wanting an edit, and silence."""
    wanting = [at for commit in found for at in _first_of_shape(candidates.wanting(commit))]
    quiet = [at for commit in found for at in _first_of_shape(candidates.quiet(commit))]
    single = [each for each in found if len(each.files) == 1]
    pairs = (candidates.unrelated(one, other) for one, other in zip(single[::2], single[1::2], strict=False))
    return wanting, [*quiet, *filter(None, pairs)]


def _first_of_shape(positions: Iterator[Position]) -> list[Position]:
    found: dict[str, Position] = {}
    for at in positions:
        found.setdefault(at.shape, at)
    return list(found.values())


def spread(positions: Sequence[Position], shapes: Sequence[str], count: int) -> list[Position]:
    """`count` positions of all shapes in turn, and each time of the language and the repository with the fewest."""
    open_ones = {shape: [at for at in positions if at.shape == shape] for shape in shapes}
    languages, owners, used = Counter[str](), Counter[str](), set[str]()
    found = list[Position]()
    while len(found) < count and any(open_ones.values()):
        for own in filter(None, open_ones.values()):
            own[:] = [at for at in own if at.files[0].commit not in used and owners[at.repository] < MAX_OF_REPOSITORY]
            if not own or len(found) == count:
                continue
            at = min(own, key=lambda at: (languages[family(at.language)], owners[at.repository], rank(at.name)))
            languages[family(at.language)] += 1
            owners[at.repository] += 1
            used.add(at.files[0].commit)
            found.append(at)
    return found


def family(language_id: str) -> str:
    """The language without its dialect; YAML, TOML, HTML and CSS are one."""
    return "markup" if language_id in MARKUP else language_id.removesuffix("react")


def rank(name: str) -> bytes:
    """An order that means nothing."""
    return hashlib.sha256(name.encode()).digest()


def halves(positions: Sequence[Position]) -> dict[str, str]:
    """The half of each repository: of those of a language, every second one is held out."""
    counts: dict[str, Counter[str]] = {}
    for at in positions:
        counts.setdefault(at.repository, Counter())[family(at.language)] += 1
    main = {name: own.most_common(1)[0][0] for name, own in counts.items()}
    ordered = sorted(counts, key=lambda name: (main[name], rank(name)))
    return {name: "held-out" if number % 2 else "develop" for number, name in enumerate(ordered)}


def build(mirror: Path, since: str, pinned: PositionList | None, wanted: int, quiet: int) -> PositionList:
    """The list of the clones below a folder. Raises SourceError."""
    wanting_all, quiet_all = list[Position](), list[Position]()
    known = dict[str, tuple[str, str]]()
    newest = ""
    for name, commit, licence in suite.progress(list(chosen_sources(mirror, pinned)), "repositories"):
        folder = repositories.folder_of(name, mirror)
        known[name] = commit, licence
        own = candidates_of(list(changed_files(folder, name, commit, since)))
        wanting_all += own[0]
        quiet_all += own[1]
        newest = max(newest, git(folder, "log", "-1", "--format=%cs", commit).decode().strip())
    positions = [*spread(wanting_all, SHAPES, wanted), *spread(quiet_all, SILENCES, quiet)]
    half_of = halves(positions)
    found = tuple(Source(name, *known[name], half=half_of[name]) for name in sorted(half_of))  # type: ignore[arg-type]
    return PositionList(since, found, tuple(positions), newest)


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mercury_lab.evaluation commit-list", description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True, help="folder of bare clones, OWNER+NAME[/repo]")
    parser.add_argument("--out", type=Path, default=LIST, help=f"the list (default: {LIST})")
    parser.add_argument("--pinned", type=Path, help="an earlier list: its repositories, up to its commits")
    parser.add_argument("--since", default=SINCE, help=f"date of the oldest commits (default: {SINCE})")
    parser.add_argument("--wanted", type=suite.count, default=WANTED, help="positions that want an edit")
    parser.add_argument("--quiet", type=suite.count, default=QUIET, help="positions that want silence")
    return parser


def main(argv: list[str]) -> int:
    options = option_parser().parse_args(argv)
    pinned = read_list(options.pinned) if options.pinned else None
    found = build(options.mirror, options.since, pinned, options.wanted, options.quiet)
    write_list(options.out, found)
    for title, key in (("shape", lambda at: at.shape), ("language", lambda at: family(at.language))):
        print(title, dict(Counter(map(key, found.positions)).most_common()))
    print(len(found.sources), "repositories,", len(found.positions), "positions")
    return 0
