"""What may still fit of a suggestion after the user typed something else than it says."""

from functools import lru_cache
from typing import Protocol

from mercury_engine.text.common_prefix import common_prefix

from mercury_lsp.completion.drafting.matching import LineTokens, is_word, tokens
from mercury_lsp.completion.drafting.renaming import Renaming, are_alike
from mercury_lsp.completion.typing_through import SuggestionAnchor
from mercury_lsp.documents.document import Snapshot

MAX_TYPED_TOKENS = 24
MAX_SUGGESTED_TOKENS = 64
"""So many tokens from the first difference on are aligned; who typed more has left the suggestion behind."""

MAX_ALIGNED_CHARS = 2000
"""Of longer suggestions only the start is looked at."""

MIN_SKIPPING_WORD_CHARS = 2
"""An unfinished word of fewer characters does not skip words of the suggestion to continue a later one."""

TokenPair = tuple[int, int]


class RemembersShown(Protocol):
    """The part of an edit history that is needed here."""

    @property
    def shown(self) -> SuggestionAnchor | None:
        """The last place where a suggestion was shown, and the text typed there since."""


def old_suggestion(history: RemembersShown, snapshot: Snapshot, offset: int) -> str:
    """The rest of the suggestion shown last that may still fit at offset; empty if none does, or all of it does."""
    place = history.shown
    if place is None or place.suggestion is None or place.end != offset:
        return ""
    return remaining(place.suggestion.text, snapshot.slice(place.start, offset))


def remaining(suggested: str, typed: str) -> str:
    """What of the suggestion follows the part that has its like in the typed text.

    Both are aligned by their longest common sequence of tokens. A word typed in place of another is put for that
    one in the rest too.
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
    if trailing and at < len(theirs.texts) and are_alike(trailing[0], theirs.texts[at]):
        renaming.learn(theirs.texts[at], trailing[0])
        at += 1
    rest = _from(suggested, theirs, at, typed)
    renamed = renaming.apply(rest)
    return renamed if renamed.strip() and (pairs or renamed != rest) else ""


_suggested = lru_cache(256)(tokens)
"""It stays the same while the user types."""


def _aligned(ours: tuple[str, ...], theirs: tuple[str, ...], has_word: bool) -> list[TokenPair] | None:
    """Equal tokens of both in order, as many as can be, and as far to the left; None when too much was typed.

    The last of ours is left out when it may be unfinished.
    """
    end = len(ours) - has_word
    lead = common_prefix(ours[:end], theirs)
    if end - lead > MAX_TYPED_TOKENS:
        return None
    common = _common(ours[lead:end], theirs[lead : lead + MAX_SUGGESTED_TOKENS])
    return [(at, at) for at in range(lead)] + [(one + lead, other + lead) for one, other in common]


def _common(ours: tuple[str, ...], theirs: tuple[str, ...]) -> list[TokenPair]:
    """The longest common subsequence, as indices; of equally long ones that which ends first in theirs."""
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
    """Words that stand alone between the same neighbours in both."""
    renaming = Renaming()
    for _, other in pairs:
        renaming.learn(theirs[other], theirs[other])
    for (one, other), (next_one, next_other) in zip([(-1, -1), *pairs], pairs, strict=False):
        if next_one - one == next_other - other == 2 and are_alike(ours[one + 1], theirs[other + 1]):
            renaming.learn(theirs[other + 1], ours[one + 1])
    return renaming


def _continued(trailing: tuple[str, ...], theirs: tuple[str, ...], at: int) -> int | None:
    """Which token of theirs, from at on, the unfinished word begins."""
    if len(trailing) != 1:
        return None
    word = trailing[0]
    reach = len(theirs) if len(word) >= MIN_SKIPPING_WORD_CHARS else at + 1
    return next((index for index in range(at, min(reach, len(theirs))) if theirs[index].startswith(word)), None)


def _from(suggested: str, theirs: LineTokens, at: int, typed: str) -> str:
    """The suggestion from a token on, with the blanks before it that are not typed yet."""
    if at == len(theirs.texts):
        return ""
    blanks = suggested[theirs.ends[at - 1] if at else 0 : theirs.starts[at]]
    written = typed[len(typed.rstrip()) :]
    if blanks.startswith(written):
        blanks = blanks[len(written) :]
    else:
        blanks = blanks.lstrip(" \t") if "\n" in blanks and "\n" not in written else ""
    return blanks + suggested[theirs.starts[at] :]
