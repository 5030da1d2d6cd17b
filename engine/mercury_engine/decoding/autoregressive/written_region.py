"""What a rewrite has written of a region so far: how far it is the present text again, and the hunks where it differs.

While the model writes what already stands there, the draft is the rest of the present text. After a token that it
writes differently, the draft resumes where the present text has the longest match of the last written tokens, so what
stays after an insertion, a deletion or a replacement is verified many tokens at a time, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mercury_engine.api import RegionHunk, Rewrite
from mercury_engine.decoding.autoregressive.regions import Region
from mercury_engine.text.lines import lines_of

MAX_REJECTED = 6
"""Tokens of a region from which hunks are written in vain before it is left."""

MORE_LINES = 8
"""Lines by which a rewrite may be longer than its region."""

MORE_TOKENS = 24 * MORE_LINES
"""Tokens granted for these lines."""

LONGEST_MATCH = 8
"""Most written tokens that are compared with the present ones."""

CONTEXT_MATCH = 2
"""Tokens of a match in the context that are enough to draft what follows it there."""

GUESSED_TOKENS = 4
"""Tokens drafted after a guess; after a match or a run, this many for each of its tokens.

In 129 steps of real commits this takes 3 % more passes than full drafts and reads a third fewer rows.
"""

CONFIRMING_RUN = 4
"""Present tokens written in a row after which earlier ones are given up for good; a shorter match may mislead."""


@dataclass(frozen=True, slots=True)
class WrittenHunk:
    """Lines [start, end) of the present text, which become the lines [new_start, new_end) of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int
    probability: float
    """Product of its tokens' probabilities."""


@dataclass(slots=True)
class WrittenRegion:
    """What is written so far; in a branch, also the hunk that is being written."""

    region: Region
    texts: Sequence[str]
    """The text of each token of the vocabulary."""
    run: int
    """Number of tokens written last that are the present ones before `next`; 0 if that is a guess."""
    ids: list[int] = field(default_factory=list)
    """The tokens written."""
    text: str = ""
    """Their text."""
    next: int = 0
    """The present token that should come next."""
    settled: tuple[int, int] = (0, 0)
    """Numbers of present tokens that are certainly done with, and of tokens written up to there: matches come later."""
    hunks: list[WrittenHunk] = field(default_factory=list)
    ended: bool = False
    steps: int = 0
    rejected: int = 0
    """Tokens from which hunks were written in vain."""
    probability: float = 1.0
    """That of the hunk."""
    before: tuple[str, str] = ("", "")
    """The present text and the new one before the hunk."""
    back: tuple[int, int] | None = None
    """Numbers of present and of written tokens where the hunk ended, if lines follow that stay."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be written."""
        is_long = self.text.count("\n") > self.region.lines + MORE_LINES
        return is_long or self.rejected >= MAX_REJECTED or len(self.ids) > len(self.region.ids) + MORE_TOKENS

    @property
    def has_enough(self) -> bool:
        """Whether a likely hunk is written, and a line after it that stays."""
        least = self.region.request.enough
        if least is None or not self.hunks or self.hunks[-1].probability < least:
            return False
        return self.text.count("\n") > self.hunks[-1].new_end

    @property
    def has_all(self) -> bool:
        """Whether the text that follows the region was written whole after the region."""
        present = self.region.ids
        follows = len(present) - self.region.length
        return bool(follows) and self.next == len(present) and self.run >= follows

    @property
    def is_at_end(self) -> bool:
        """Whether nothing of the region is left to be written again."""
        return self.next >= self.region.length

    @property
    def is_at_same_line(self) -> bool:
        """Whether a line begins here in both texts, or right behind the same token that breaks a line."""
        if is_line_start(self.text) and (self.is_at_end or self._begins_line(self.next)):
            return True
        last = self.ids[-1] if self.ids else None
        return last is not None and self._breaks(last) and self.next > 0 and self.region.ids[self.next - 1] == last

    def expects(self, token: int) -> bool:
        """Whether the token is the present one that should come next."""
        return self.next < len(self.region.ids) and self.region.ids[self.next] == token

    def branch(self) -> "WrittenRegion":
        """A copy on which a hunk is written."""
        before = self._text(self.region.ids[: self.next]), self.text
        return replace(self, ids=[*self.ids], hunks=[*self.hunks], probability=1.0, before=before, back=None)

    def rest(self, most: int) -> list[int]:
        """At most `most` of the present tokens that should come next."""
        return self.region.ids[self.next : min(self.region.drafted, self.next + most)]

    def draft(self, most: int) -> list[int]:
        """At most `most` tokens that may come next: present ones or, if these are guessed, a match in the context."""
        if not self.run:
            match = self.region.drafter.match(self.ids)
            if match.length >= CONTEXT_MATCH and match.draft:
                return match.draft[:most]
        return self.rest(min(most, GUESSED_TOKENS * max(1, self.run)))

    def write(self, token: int) -> None:
        """Add a token; the text that follows the region ends it."""
        is_expected, follows = self.expects(token), self.region.follows
        self.ids.append(token)
        self.text += self.texts[token]
        if is_expected:
            self.next, self.run = self.next + 1, self.run + 1
        else:
            self._resume()
        if self.run >= CONFIRMING_RUN:
            self.settled = self.next, len(self.ids)
        if self.has_all and self.text.endswith(follows):
            self.ended = is_line_start(self.text.removesuffix(follows))

    def keep(self) -> None:
        """Write the next present token, or end where the region does."""
        if self.next < self.region.drafted:
            self.write(self.region.ids[self.next])
        else:
            self.ended = True

    @property
    def end(self) -> int:
        """Number of present tokens up to the end of the hunk."""
        return self.region.length if self.back is None else self.back[0]

    @property
    def moves_blanks(self) -> bool:
        """Whether the hunk only changes blanks and line breaks."""
        changed = (text[len(before) :] for text, before in zip(self._up_to_hunk(), self.before, strict=True))
        old, new = ("".join(text.split()) for text in changed)
        return old == new

    def add_hunk(self) -> None:
        """Add the hunk that was written to the others."""
        (start, new_start), texts = (text.count("\n") for text in self.before), self._up_to_hunk()
        is_last = self.back is None  # and then the last line may have no line break
        end, new_end = (text.count("\n") + (is_last and not is_line_start(text)) for text in texts)
        self.hunks.append(WrittenHunk(start, end, new_start, new_end, self.probability))

    def rewrite(self, text: str | None) -> Rewrite:
        """The answer with this new text; None if that makes no sense, which is not finished."""
        present = self.region.request.text
        is_finished = text is not None and self.ended
        return Rewrite(
            text=text if text is not None and is_finished else present,
            steps=self.steps,
            is_finished=is_finished,
            tokens_read=self.region.context.tokens_read,
            hunks=() if text is None or text == present else tuple(self._region_hunks(lines_of(text))),
        )

    def _region_hunks(self, lines: list[str]) -> Iterator[RegionHunk]:
        """The hunks by the region's lines, of which the model may write the last ones only, or more that frame them."""
        above, count = self.region.lines_above, len(lines_of(self.region.request.text))
        for each in self.hunks:
            text = "".join(lines[max(0, each.new_start + above) : each.new_end + above])
            yield RegionHunk(max(0, each.start + above), min(each.end + above, count), text, each.probability)

    def _up_to_hunk(self) -> tuple[str, str]:
        """The present text and the new one up to the end of the hunk."""
        new = self.text if self.back is None else self._text(self.ids[: self.back[1]])
        if self.back is None and self.has_all:
            new = new.removesuffix(self.region.follows)
        return self._text(self.region.ids[: min(self.end, self.region.length)]), new

    def _resume(self) -> None:
        """Choose the present token that should come next, after a token that is not the expected one."""
        settled = self.settled[0]
        self.run, self.next = self._longest_match()
        if self.run:
            return
        if self._breaks(self.ids[-1]):
            self.next = settled if self._begins_line(settled) else self._line_behind(settled)
        else:
            ends_line = settled < len(self.region.ids) and self._breaks(self.region.ids[settled])
            self.next = min(settled + (not ends_line), self.region.length)

    def _longest_match(self) -> tuple[int, int]:
        """Length of the longest match of the last tokens written since the change, and its end; the first of equals."""
        (settled, done), present = self.settled, self.region.ids
        longest, end = 0, settled
        new = min(LONGEST_MATCH, len(self.ids) - done)
        for at in range(settled + 1, len(present) + 1):
            length, most = 0, min(new, at - settled)
            while length < most and present[at - 1 - length] == self.ids[-1 - length]:
                length += 1
            if length > longest:
                longest, end = length, at
        return longest, end

    def _line_behind(self, at: int) -> int:
        """The first token of the line after a present token's."""
        while at < self.region.length and not self._begins_line(at + 1):
            at += 1
        return min(at + 1, self.region.length)

    def _begins_line(self, at: int) -> bool:
        return not at or self._breaks(self.region.ids[at - 1])

    def _breaks(self, token: int) -> bool:
        return "\n" in self.texts[token]

    def _text(self, ids: Sequence[int]) -> str:
        return "".join(self.texts[token] for token in ids)


def is_line_start(text: str) -> bool:
    return not text or text.endswith("\n")
