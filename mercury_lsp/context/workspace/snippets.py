"""Snippets of other files: the declarations and the first lines of a file, and the choice of those for a request.

Of each kind, a request gets the one most similar to the text around the cursor, measured as in training
(mercury_lab/training/examples/snippets.py).
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, count

from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import path_line
from tree_sitter import Node, Parser

from mercury_lsp.context.workspace.reading import NotRead, read
from mercury_lsp.documents.chunked_text import ChunkedText, with_line_feeds
from mercury_lsp.documents.languages import Language, language, language_of, parser
from mercury_lsp.documents.parsing import begin_or_resume
from mercury_lsp.documents.redaction import redacted_lines, without_secrets

MAX_FILE_BYTES = 400_000
"""Largest file read."""

MAX_SOURCE_LINE_BYTES = 2_000
"""Longest line of a source file; a file with a longer line was generated."""

FILE_START_CHARS = 24_000
"""Characters at the start of a file that become code snippets, next to its declarations."""

MAX_DECLARATION_CHARS = 160
"""Longest declaration; longer ones are cut."""

MAX_DECLARATIONS_CHARS = 8_000
"""Longest list of one file's declarations."""

MAX_NESTING_DEPTH = 8
"""Levels of nested classes and namespaces listed."""

INDENT = "    "

RestIfDue = Callable[[], None]
"""Called now and then to give other threads a turn."""

CALLBACKS_PER_REST = 8
"""Progress callbacks of the parser between two rests: about a millisecond."""

KEPT_SCORE_SHARE = 0.7
"""A snippet stays while its score is at least this share of the best score."""

_LONG_WORD = re.compile(r"[^\W\d]\w{3,}")


class SnippetKind(StrEnum):
    """The content of a snippet; a request has at most one of each kind."""

    DECLARATIONS = "declarations"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of another file, about as long as a chunk."""

    kind: SnippetKind
    text: str
    """A comment with the path, then the lines."""
    words: frozenset[str]

    @classmethod
    def of(cls, kind: SnippetKind, path: str, language_id: str, lines: str) -> "Snippet":
        """Lines of the file at `path`, in the layout the reader saw in training."""
        return cls(kind, language(language_id).marks.line(path_line(path)) + with_line_feeds(lines), words_of(lines))


def snippets_of(kind: SnippetKind, path: str, language_id: str, text: str) -> list[Snippet]:
    """A text of the file at `path`, cut into snippets."""
    return [Snippet.of(kind, path, language_id, chunk) for chunk in split(text)]


def words_of(text: str) -> frozenset[str]:
    """The words of at least four letters."""
    return frozenset(_LONG_WORD.findall(text))


def most_similar(candidates: Sequence[Snippet], around: frozenset[str], most: int) -> list[Snippet]:
    """At most `most` of each kind, best first; none without a word in common with the text around the cursor."""
    found = []
    for of_kind in _by_kind(candidates):
        scores = _scores(of_kind, around)
        order = sorted(range(len(of_kind)), key=lambda number: -scores[number])
        found += [of_kind[number] for number in order[:most] if scores[number]]
    return found


def choose(
    candidates: Sequence[Snippet], around: frozenset[str], kept: tuple[Snippet, ...] = ()
) -> tuple[Snippet, ...]:
    """The best snippet of each kind; those in `kept`, chosen before, stay unless others are much better."""
    chosen = []
    for of_kind in _by_kind(candidates):
        scores = dict(zip(of_kind, _scores(of_kind, around), strict=True))
        best = max(scores, key=scores.__getitem__, default=None)
        if best is not None and scores[best]:
            shown = next((each for each in kept if each.kind is best.kind), best)
            chosen.append(shown if scores.get(shown, 0.0) >= KEPT_SCORE_SHARE * scores[best] else best)
    return tuple(chosen)


def _by_kind(candidates: Sequence[Snippet]) -> list[list[Snippet]]:
    return [[each for each in candidates if each.kind is kind] for kind in SnippetKind]


def _scores(candidates: Sequence[Snippet], around: frozenset[str]) -> list[float]:
    """Words in common with the text around the cursor; a word counts less the more candidates contain it."""
    common = [candidate.words & around for candidate in candidates]
    holders = Counter(chain.from_iterable(common))
    return [math.fsum(1 / holders[word] for word in words) for words in common]


def file_snippets(path: str, shown_path: str, text: str, rest_if_due: RestIfDue) -> tuple[Snippet, ...]:
    """The declarations and the first lines of a file, without secrets; the model sees `shown_path`."""
    language_id = language_of(path)
    secret = {line.strip() for line in redacted_lines(text, language_id)}
    declared = declarations(language_id, text, rest_if_due).splitlines(keepends=True)
    parts = {
        SnippetKind.DECLARATIONS: "".join(line for line in declared if line.strip() not in secret),
        SnippetKind.CODE: _start(text),
    }
    clean = ((kind, without_secrets(part, language_id)) for kind, part in parts.items())
    return tuple(snippet for kind, part in clean for snippet in snippets_of(kind, shown_path, language_id, part))


def read_text(path: str, root: str) -> str:
    """The text of a file below a workspace folder; empty if it must not or should not be read."""
    if not _is_inside(root, path):
        return ""
    try:
        data = read(path, MAX_FILE_BYTES) or b""
    except NotRead:
        return ""
    if b"\0" in data or max(map(len, data.split(b"\n"))) > MAX_SOURCE_LINE_BYTES:
        return ""
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _is_inside(root: str, path: str) -> bool:
    """Whether a path below the root is really there: no link on the way leads elsewhere."""
    root += "/"
    return os.path.realpath(path) == os.path.join(os.path.realpath(root), os.path.relpath(path, root))


def _start(text: str) -> str:
    """The first lines that fit into `FILE_START_CHARS`, whole: part of a line might hide that it is a secret."""
    return text if len(text) <= FILE_START_CHARS else text[: text.rfind("\n", 0, FILE_START_CHARS) + 1]


def declarations(language_id: str, text: str, rest_if_due: RestIfDue) -> str:
    """The declarations of a text, one per line; empty for languages without rules."""
    nodes = language(language_id)
    if not nodes.headed:
        return ""
    source = text.encode("utf-8", "surrogatepass")
    lines, room = [], MAX_DECLARATIONS_CHARS
    for line in _within(_parsed(parser(language_id), text, rest_if_due), source, nodes, 0):
        rest_if_due()
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return "".join(lines)


def _parsed(parser: Parser, text: str, rest_if_due: RestIfDue) -> Node:
    """The root of the tree; the parser pauses for rests and resumes where it stopped."""
    source, callbacks = ChunkedText.of(text), count(1)

    def is_enough(_byte: int, _has_error: bool) -> bool:
        return next(callbacks) % CALLBACKS_PER_REST == 0

    while (tree := begin_or_resume(parser, source, is_enough)) is None:
        rest_if_due()
    return tree.root_node


def _within(node: Node, source: bytes, nodes: Language, depth: int) -> Iterator[str]:
    """Definitions up to their bodies, and short declarations whole; of a long one the first line."""
    for child in node.named_children:
        if child.type in nodes.passed:
            yield from _within(child, source, nodes, depth)
        elif child.type in nodes.headed or child.type in nodes.holding:
            if not _is_private(child, source):
                body = child.child_by_field_name("body")
                end = child.end_byte if body is None else body.start_byte
                yield INDENT * depth + _one_line(source[child.start_byte : end])
                if child.type in nodes.holding and body is not None and depth < MAX_NESTING_DEPTH:
                    yield from _within(body, source, nodes, depth + 1)
        elif child.type in nodes.whole and not _is_private(child, source):
            text = source[child.start_byte : child.end_byte]
            line = _one_line(text)
            is_long = len(line) >= MAX_DECLARATION_CHARS
            yield INDENT * depth + (_one_line(text.partition(b"\n")[0]) if is_long else line)


def _one_line(text: bytes) -> str:
    return " ".join(text.decode("utf-8", "replace").split())[: MAX_DECLARATION_CHARS - 1] + "\n"


def _is_private(node: Node, source: bytes) -> bool:
    """Whether the name marks it as private to its file."""
    name = node.child_by_field_name("name") or node.child_by_field_name("left")
    if name is None:
        return False
    text = source[name.start_byte : name.end_byte]
    return text.startswith(b"_") and not (text.startswith(b"__") and text.endswith(b"__"))
