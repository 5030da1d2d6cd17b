"""Draw cursors in public repositories: `python -m mercury_lab.evaluation cursor-list --mirror DIR --repositories NAME`.

Nobody chooses single cursors. Of each language it takes code lines of files that the repositories added since a date,
after the training data of the models here were collected, in an order that means nothing. The list has repositories,
commits, licences, paths and positions; texts are read from the clones.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path, PurePath

from mercury_engine.text.brackets import CLOSER_OF, outside_strings
from mercury_engine.text.lines import indent_of

from mercury_lab.commit_edits.build import family, rank
from mercury_lab.commit_edits.licences import licence_of
from mercury_lab.editing.drawn_cursors import LIST, PLACES, DrawnCursor, Source
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.judge import is_inside_word
from mercury_lab.training.commits.history import Blobs, git
from mercury_lab.training.commits.repositories import folder_of
from mercury_lab.training.data import filters
from mercury_lsp.documents.languages import language, language_of, new_parser
from mercury_lsp.errors import UsageError

SINCE = "2025-01-01"

LANGUAGES = ("python", "javascript", "typescript", "go", "rust", "c", "cpp", "java", "lua", "shellscript")

MIN_TYPED_CHARS = 10
"""Shortest text to type, so that eight characters are left after two letters."""

MAX_FILES = 60
"""Files of a language that are read in a repository."""

MAX_FILE_CHARS = 40_000
MAX_BLOCK_LINES, MAX_BLOCK_CHARS = 6, 300


def draw(mirror: Path, names: Sequence[str], places: Sequence[str], each: int, since: str) -> list[DrawnCursor]:
    """`each` cursors of every place in every language, one of a file, from the repositories in turn."""
    candidates = list[DrawnCursor]()
    for name in suite.progress(names, "repositories"):
        candidates += _candidates(folder_of(name, mirror), name, places, since)
    candidates.sort(key=lambda at: rank(f"{at.repository} {at.path} {at.line} {at.place}"))
    found, used, files = list[DrawnCursor](), Counter[str](), set[tuple[str, str]]()
    for language_id in LANGUAGES:
        for place in places:
            own = [at for at in candidates if at.place == place and _language(at.path) == language_id]
            for _ in range(each):
                own = [at for at in own if (at.repository, at.path) not in files]
                if not own:
                    break
                chosen = min(own, key=lambda at: used[at.repository])
                found.append(chosen)
                used[chosen.repository] += 1
                files.add((chosen.repository, chosen.path))
    return found


def _candidates(folder: Path, name: str, places: Sequence[str], since: str) -> Iterator[DrawnCursor]:
    with Blobs(folder) as blobs:
        for path in _new_paths(folder, since):
            language_id = _language(path)
            content = blobs.read(f"HEAD:{path}")
            text = None if content is None else filters.text_of(content, language_id)
            if text and len(text) <= MAX_FILE_CHARS and not filters.text_fault(text):
                for place, *position in _places(text, language_id):
                    if place in places:
                        yield DrawnCursor(name, path, place, *position)


def _new_paths(folder: Path, since: str) -> list[str]:
    """Some paths of each language whose file names did not exist before a date, so that no moved file counts as new."""
    old = git(folder, "rev-list", "-1", f"--before={since}T00:00:00Z", "HEAD").decode().strip()
    known = {PurePath(path).name for path in _paths(folder, old)} if old else set()
    new, counts = [path for path in _paths(folder, "HEAD") if PurePath(path).name not in known], Counter[str]()
    found = list[str]()
    for path in sorted(new, key=rank):
        language_id = _language(path)
        if language_id in LANGUAGES and not filters.path_fault(path, language_id):
            counts[language_id] += 1
            found += [path] if counts[language_id] <= MAX_FILES else []
    return found


def _paths(folder: Path, commit: str) -> list[str]:
    return git(folder, "ls-tree", "-r", "--name-only", commit).decode("utf-8", "replace").splitlines()


def _places(text: str, language_id: str) -> Iterator[tuple[str, int, int, int, int]]:
    """A cursor of each place in every line of code: place, line, column, and the last line and column of its text."""
    lines = text.split("\n")
    for number in _code_lines(text, language_id):
        line = lines[number].rstrip()
        indent, end = indent_of(line), len(line)
        if end - indent >= MIN_TYPED_CHARS:
            yield "whole line", number, indent, number, end
        middles = [at for at in range(indent + 2, end - MIN_TYPED_CHARS + 1) if not is_inside_word(line, at)]
        if middles:
            yield "rest of a line", number, middles[rank(line)[0] % len(middles)], number, end
        if (span := _first_arguments(line)) is not None:
            yield "argument list", number, span[0], number, span[1]
        if (last := _block_end(lines, number)) is not None:
            first = lines[number + 1]
            yield "block", number + 1, indent_of(first), last, len(lines[last].rstrip())


def _code_lines(text: str, language_id: str) -> list[int]:
    """Numbers of the lines that begin with code: neither blank, nor a comment, nor within a string; none of a file that
    does not parse."""
    tree, own = new_parser(language_id).parse(text.encode()), language(language_id)
    if tree.root_node.has_error:
        return []
    found, prose = list[int](), own.comments | own.strings
    for number, line in enumerate(text.split("\n")):
        column = len(line[: len(line) - len(line.lstrip())].encode())
        node = tree.root_node.descendant_for_point_range((number, column), (number, column))
        while node is not None and node.type not in prose:
            node = node.parent
        if line.strip() and node is None:
            found.append(number)
    return found


def _first_arguments(line: str) -> tuple[int, int] | None:
    """Columns between the first brackets of a line that have enough text in them."""
    opened = list[tuple[str, int]]()
    spans = list[tuple[int, int]]()
    for column, character, _ in outside_strings(line):
        if character in CLOSER_OF:
            opened.append((character, column))
        elif opened and character == CLOSER_OF[opened[-1][0]]:
            start = opened.pop()[1] + 1
            if column - start >= MIN_TYPED_CHARS:
                spans.append((start, column))
    return min(spans, default=None)


def _block_end(lines: Sequence[str], header: int) -> int | None:
    """The last line of the block below a header line; None if it has no lines, one, or too many."""
    indent, last = indent_of(lines[header]), header
    for number in range(header + 1, len(lines)):
        if lines[number].strip() and indent_of(lines[number]) <= indent:
            break
        last = number if lines[number].strip() else last
    size = sum(map(len, lines[header + 1 : last + 1]))
    is_fit = 2 <= last - header <= MAX_BLOCK_LINES and size <= MAX_BLOCK_CHARS and bool(lines[header + 1].strip())
    return last if is_fit else None


def _language(path: str) -> str:
    return family(language_of(path))


def sources(mirror: Path, names: Iterable[str]) -> list[Source]:
    """The repositories with their commits. Raises UsageError for one without a permissive licence."""
    found = list[Source]()
    for name in names:
        folder = folder_of(name, mirror)
        licence = licence_of(folder, "HEAD")
        if licence is None:
            raise UsageError(f"{name} has no LICENSE that is permissive alone; leave it out")
        found.append(Source(name, git(folder, "rev-parse", "HEAD").decode().strip(), licence))
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_lab.evaluation cursor-list", description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True, help="folder of bare clones, OWNER+NAME[/repo]")
    parser.add_argument("--repositories", nargs="+", required=True, metavar="OWNER/NAME")
    parser.add_argument("--places", nargs="+", choices=PLACES, default=PLACES[:3])
    parser.add_argument("--each", type=suite.count, default=5, help="cursors of a place in a language (default: 5)")
    parser.add_argument("--since", default=SINCE, help=f"date from which on files were added (default: {SINCE})")
    parser.add_argument("--out", type=Path, default=LIST, help=f"the list (default: {LIST})")
    options = parser.parse_args(argv)
    found = draw(options.mirror, options.repositories, options.places, options.each, options.since)
    rows: dict[str, list[Source] | list[DrawnCursor]] = {
        "repositories": sources(options.mirror, sorted({at.repository for at in found})),
        "cursors": sorted(found, key=lambda at: (at.repository, at.path)),
    }
    parts = (
        f'"{name}": [\n' + ",\n".join(json.dumps(asdict(row)) for row in own) + "\n]" for name, own in rows.items()
    )
    options.out.write_text(f'{{"since": "{options.since}",\n' + ",\n".join(parts) + "\n}\n", "utf-8")
    print(dict(Counter(_language(at.path) for at in found)), len(found), "cursors")
    return 0
