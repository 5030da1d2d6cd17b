"""What a rewrite has written of a region so far: its text, and the hunks by which that differs from the present one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mercury_engine.api import RegionHunk, Rewrite
from mercury_engine.decoding.autoregressive.present_text import PresentText
from mercury_engine.decoding.autoregressive.regions import Region
from mercury_engine.text.lines import lines_of

MAX_REJECTED = 6
"""Tokens of a region from which hunks are written in vain before it is left."""

MORE_LINES = 8
"""Lines by which a rewrite may be longer than its region."""

MORE_TOKENS = 24 * MORE_LINES
"""Tokens granted for these lines."""


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
    present: PresentText
    text: str = ""
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
        return (
            is_long or self.rejected >= MAX_REJECTED or len(self.present.written) > len(self.present.ids) + MORE_TOKENS
        )

    @property
    def has_enough(self) -> bool:
        """Whether a likely hunk is written, and a line after it that stays."""
        least = self.region.request.enough
        if least is None or not self.hunks or self.hunks[-1].probability < least:
            return False
        return self.text.count("\n") > self.hunks[-1].new_end

    def branch(self) -> "WrittenRegion":
        """A copy on which a hunk is written."""
        before = self._text(self.present.ids[: self.present.next]), self.text
        return replace(
            self, present=self.present.copy(), hunks=[*self.hunks], probability=1.0, before=before, back=None
        )

    def write(self, token: int) -> None:
        """Add a token; the text that follows the region ends it."""
        self.present.write(token)
        self.text += self.present.texts[token]
        follows = self.region.follows
        if self.present.has_all and self.text.endswith(follows):
            self.ended = is_line_start(self.text.removesuffix(follows))

    def keep(self) -> None:
        """Write the next present token, or end where the region does."""
        if self.present.next < self.region.drafted:
            self.write(self.present.ids[self.present.next])
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
        end, new_end = (line_count(text) if self.back is None else text.count("\n") for text in texts)
        self.hunks.append(WrittenHunk(start, end, new_start, new_end, self.probability))

    def rewrite(self, text: str | None) -> Rewrite:
        """The answer with this new text; None if that makes no sense, which is not finished."""
        present = self.region.request.text
        is_finished = text is not None and self.ended
        return Rewrite(
            text=text if text is not None and is_finished else present,
            steps=self.steps,
            is_finished=is_finished,
            tokens_read=self.region.context.cached.tokens_read,
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
        written = self.present.written if self.back is None else self.present.written[: self.back[1]]
        new = self._text(written)
        if self.back is None and self.present.has_all:
            new = new.removesuffix(self.region.follows)
        return self._text(self.present.ids[: min(self.end, self.region.length)]), new

    def _text(self, ids: Sequence[int]) -> str:
        return "".join(self.present.texts[token] for token in ids)


def line_count(text: str) -> int:
    """The number of lines; the last one may have no line break."""
    return text.count("\n") + (not is_line_start(text))


def is_line_start(text: str) -> bool:
    return not text or text.endswith("\n")
