"""The part of a suggestion that may still fit after the user typed something different: the next fill's draft."""

import re
from difflib import SequenceMatcher

from mercury_lsp.completion.typing_through import SuggestionAnchor
from mercury_lsp.documents.document import Snapshot

MAX_TYPED_CHARS, MAX_SUGGESTED_CHARS = 200, 800
"""Characters that are compared."""

MAX_OTHER_TOKENS = 24
"""Tokens typed since the last one of the suggestion; a user who typed more has abandoned it."""

MIN_SKIPPING_WORD_CHARS = 2
"""Shortest unfinished word, in characters, that may skip words of the suggestion to continue a later one."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


def old_suggestion(anchor: SuggestionAnchor | None, snapshot: Snapshot, offset: int) -> str:
    """The rest of an anchor's suggestion that may still fit at offset; empty if none of it does, or all of it."""
    if anchor is None or anchor.suggestion is None or anchor.end != offset or offset - anchor.start > MAX_TYPED_CHARS:
        return ""
    return remaining(anchor.suggestion.text, snapshot.slice(anchor.start, offset))


def remaining(suggested: str, typed: str) -> str:
    """The part of the suggestion after its last token that stands in the typed text, too.

    A word that the user is still typing continues the next word that begins with it; another word in place of the
    suggested one takes its place.
    """
    suggested = suggested[:MAX_SUGGESTED_CHARS]
    if suggested.startswith(typed) or typed.startswith(suggested):
        return ""
    ours, theirs = _TOKEN.findall(typed), list(_TOKEN.finditer(suggested))
    word = ours.pop() if _is_word(typed[-1]) else ""
    ours_at, at = _after_last_match(ours, [each[0] for each in theirs])
    if word and ours_at == len(ours):
        last = len(theirs) if len(word) >= MIN_SKIPPING_WORD_CHARS else at + 1
        for token in theirs[at:last]:
            if token[0].startswith(word):
                return suggested[token.start() + len(word) :]
    replacing = [*ours[ours_at:], *([word] if word else [])]
    if not at or at == len(theirs) or len(replacing) > MAX_OTHER_TOKENS:
        return ""
    if replacing and _is_word(replacing[0]) and _is_word(theirs[at][0]):
        at += 1
    return _without_typed_blanks(suggested[theirs[at - 1].end() :], typed)


def _after_last_match(ours: list[str], theirs: list[str]) -> tuple[int, int]:
    """The positions after the last tokens that both have, (0, 0) if there are none."""
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    matches = [each for each in matcher.get_matching_blocks() if each.size]
    return (matches[-1].a + matches[-1].size, matches[-1].b + matches[-1].size) if matches else (0, 0)


def _without_typed_blanks(rest: str, typed: str) -> str:
    """The rest without the blanks that stand before the cursor already; empty if only blanks are left."""
    written = typed[len(typed.rstrip()) :]
    bare = rest.lstrip()
    blanks = rest[: len(rest) - len(bare)]
    if blanks.startswith(written):
        blanks = blanks[len(written) :]
    else:
        blanks = blanks.lstrip(" \t") if "\n" in blanks and "\n" not in written else ""
    return blanks + bare if bare else ""


def _is_word(token: str) -> bool:
    return token[:1].isalnum() or token[:1] == "_"
