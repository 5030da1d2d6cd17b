"""Carries a renamed key of a YAML, TOML or JSON document to the values that name it.

    -  db:                     depends_on:                  ->  depends_on:
    +  postgres:                 - db                       ->    - postgres
                               url: postgres://app@db/app   ->  url: postgres://app@postgres/app

A value names a key if the key is all of it, its host, or the part before a colon or slash. Nothing follows while
another key has the old name: then it is not known which one the values mean.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercury_lsp.completion.next_edits.edit_sites import EditSite, below_first, text_around
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.mirroring import paired
from mercury_lsp.documents.document import Snapshot

HUNKS_FOLLOWED = 4
MAX_SITES = 8

_LANGUAGES = ("yaml", "toml", "json", "jsonc")
_KEY = re.compile(r"""\s*(?:-[ \t]+)?(?:\[+\s*)?(["']?)([A-Za-z_][\w.-]*)\1\s*(?:[:=]|\]+\s*\Z)""")
_WORDS_OF_VALUES = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none"})


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """A key before and after."""

    hunk: Hunk
    old: str
    new: str


def renamed_keys(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[RenamedKey]:
    """The keys of a document that the latest hunks renamed, newest first; hunks come oldest first."""
    if snapshot.language_id not in _LANGUAGES:
        return
    own = [each for each in hunks if each.uri == snapshot.uri]
    for hunk in reversed(own[-HUNKS_FOLLOWED:]):
        for old, new in paired(hunk.before_lines, hunk.after_lines):
            was, now = _KEY.match(old), _KEY.match(new)
            if was is None or now is None or was[2] == now[2] or was[2].lower() in _WORDS_OF_VALUES:
                continue
            if old[: was.start(2)] == new[: now.start(2)] and old[was.end(2) :] == new[now.end(2) :]:
                yield RenamedKey(hunk, was[2], now[2])


def naming_values(key: RenamedKey, hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """The places of a key's document whose values name it, nearest first."""
    if snapshot.uri != key.hunk.uri:
        return
    at = key.hunk.offset_in(snapshot)
    first, text = text_around(at, snapshot)
    name = re.escape(key.old)
    if re.search(rf"""(?m)^\s*(?:-[ \t]+)?(?:\[+\s*)?["']?{name}["']?\s*(?:[:=](?!/)[ \t\n]|\]+\s*$)""", text):
        return
    own = [each for each in hunks if each.uri == snapshot.uri]
    sites: list[EditSite] = []
    for found in re.finditer(rf"""(?:(?<=[\s"'\[,@=])|(?<=//)){name}(?=[\s"'\],:/]|\Z)""", text):
        line = snapshot.source.line_of(first + found.start())
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if not any(each.covers(line) for each in own) and _is_value(before, text[found.end() :]):
            sites.append(EditSite(first + found.start(), key.old, key.new))
    yield from below_first(sites, at)[:MAX_SITES]


def _is_value(before: str, rest: str) -> bool:
    """Whether a name, with its line's text before it and the text behind it, is a value or the first part of one."""
    if re.search(r"(?:^|\s)#", before) or not re.search(r"(?:[:=]|^\s*-|\[|,)", before):
        return False
    is_part = rest[:1] in ("/", ":") and not re.match(r":(?:\s|\Z)", rest)
    if before.endswith(("@", "//")):
        return is_part or not rest[:1].strip() or rest[:1] in "\"'"
    opens = re.search(r"""(?:[:=]|^\s*-|\[|,)\s*["']?\Z""", before)
    return opens is not None and (is_part or bool(re.match(r"""["']?[ \t]*(?:\n|\Z|,|\]|#)""", rest)))
