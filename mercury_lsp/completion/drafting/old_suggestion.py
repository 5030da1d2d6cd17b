"""The part of a suggestion that may still fit after the user typed something different."""

from functools import lru_cache

from mercury_engine.text.common_prefix import common_prefix

from mercury_lsp.completion.drafting.matching import LineTokens, is_word, tokens
from mercury_lsp.completion.drafting.renaming import Renaming, are_same_kind
from mercury_lsp.completion.typing_through import SuggestionAnchor
from mercury_lsp.documents.document import Snapshot

MAX_TYPED_TOKENS = 24
MAX_SUGGESTED_TOKENS = 64
"""Tokens aligned from the first difference on; a user who typed more has abandoned the suggestion."""

MAX_ALIGNED_CHARS = 2000
"""Characters of a suggestion that are aligned, from its start."""

MIN_SKIPPING_WORD_CHARS = 2
"""Shortest unfinished word, in characters, that may skip words of the suggestion to continue a later one."""

TokenPair = tuple[int, int]


def old_suggestion(anchor: SuggestionAnchor | None, snapshot: Snapshot, offset: int) -> str:
    """The rest of an anchor's suggestion that may still fit at offset; empty if none of it does, or all of it."""
    if anchor is None or anchor.suggestion is None or anchor.end != offset:
        return ""
    return remaining(anchor.suggestion.text, snapshot.slice(anchor.start, offset))


def remaining(suggested: str, typed: str) -> str:
    """The part of the suggestion after its last token that matches the typed text.

    Both are aligned by their longest common subsequence of tokens. Where the user typed one word in place of another,
    it replaces that word in the rest too.
    """
    suggested = suggested[:MAX_ALIGNED_CHARS]
    if suggested.startswith(typed) or typed.startswith(suggested) or len(typed) > MAX_ALIGNED_CHARS:
        return ""
    ours, theirs = tokens(typed), _suggested(suggested)
    has_word = is_word(typed[-1])
    pairs = _aligned(ours.texts, theirs.texts, has_word)
    if pairs is None:
        return ""
    renaming = _renaming(pairs, ours.texts, theirs.texts)
    last_ours, last_theirs = pairs[-1] if pairs else (-1, -1)
    trailing = ours.texts[last_ours + 1 :]
    at = last_theirs + 1
    if has_word and (word_at := _continued(trailing, theirs.texts, at)) is not None:
        rest = renaming.apply(suggested[theirs.starts[word_at] :])
        return rest[len(trailing[-1]) :] if rest.startswith(trailing[-1]) else ""
    if trailing and at < len(theirs.texts) and are_same_kind(trailing[0], theirs.texts[at]):
        renaming.learn(theirs.texts[at], trailing[0])
        at += 1
    rest = _from(suggested, theirs, at, typed)
    renamed = renaming.apply(rest)
    return renamed if renamed.strip() and (pairs or renamed != rest) else ""


_suggested = lru_cache(256)(tokens)
"""Cached, for the suggestion stays the same while the user types."""


def _aligned(ours: tuple[str, ...], theirs: tuple[str, ...], has_word: bool) -> list[TokenPair] | None:
    """The longest alignment of equal tokens, as far left as possible; None when too much was typed.

    The last of our tokens is left out if it may be unfinished.
    """
    end = len(ours) - has_word
    lead = common_prefix(ours[:end], theirs)
    if end - lead > MAX_TYPED_TOKENS:
        return None
    common = _common(ours[lead:end], theirs[lead : lead + MAX_SUGGESTED_TOKENS])
    return [(at, at) for at in range(lead)] + [(one + lead, other + lead) for one, other in common]


def _common(ours: tuple[str, ...], theirs: tuple[str, ...]) -> list[TokenPair]:
    """The longest common subsequence, as pairs of indices; among equals the one that ends first in theirs."""
    lengths = [[0] * (len(theirs) + 1)]
    for one in ours:
        above, row = lengths[-1], [0]
        for at, other in enumerate(theirs):
            row.append(above[at] + 1 if one == other else max(above[at + 1], row[at]))
        lengths.append(row)
    pairs: list[TokenPair] = []
    i, j = len(ours), lengths[-1].index(lengths[-1][-1])
    while i and j:
        if ours[i - 1] == theirs[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif lengths[i - 1][j] >= lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def _renaming(pairs: list[TokenPair], ours: tuple[str, ...], theirs: tuple[str, ...]) -> Renaming:
    """The renaming implied by words that stand alone between the same neighbours in both."""
    renaming = Renaming()
    for _, other in pairs:
        renaming.learn(theirs[other], theirs[other])
    for (one, other), (next_one, next_other) in zip([(-1, -1), *pairs], pairs, strict=False):
        if next_one - one == next_other - other == 2 and are_same_kind(ours[one + 1], theirs[other + 1]):
            renaming.learn(theirs[other + 1], ours[one + 1])
    return renaming


def _continued(trailing: tuple[str, ...], theirs: tuple[str, ...], at: int) -> int | None:
    """The index, from `at` on, of the first of their tokens that the unfinished word may become."""
    if len(trailing) != 1:
        return None
    word = trailing[0]
    reach = len(theirs) if len(word) >= MIN_SKIPPING_WORD_CHARS else at + 1
    return next((index for index in range(at, min(reach, len(theirs))) if theirs[index].startswith(word)), None)


def _from(suggested: str, theirs: LineTokens, at: int, typed: str) -> str:
    """The suggestion from token `at` on, with the blanks before it that are not typed yet."""
    if at == len(theirs.texts):
        return ""
    blanks = suggested[theirs.ends[at - 1] if at else 0 : theirs.starts[at]]
    written = typed[len(typed.rstrip()) :]
    if blanks.startswith(written):
        blanks = blanks[len(written) :]
    else:
        blanks = blanks.lstrip(" \t") if "\n" in blanks and "\n" not in written else ""
    return blanks + suggested[theirs.starts[at] :]
