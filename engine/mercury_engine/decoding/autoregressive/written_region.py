"""What a rewrite has written of a region so far: its text, and the hunks by which that differs from the present one."""

from dataclasses import dataclass, field, replace

from mercury_engine.api import RegionHunk, Rewrite, RewriteRequest
from mercury_engine.decoding.autoregressive.present_text import PresentText
from mercury_engine.decoding.autoregressive.regions import ReadRegion, Region, RegionReader
from mercury_engine.text.lines import lines_of


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
    """What is written so far."""

    present: PresentText
    text: str = ""
    hunks: list[WrittenHunk] = field(default_factory=list)
    probability: float = 1.0
    """That of the hunk being written."""
    ended: bool = False
    steps: int = 0
    rejected: int = 0
    """Tokens from which hunks were written in vain."""
    back: tuple[int, int] | None = None
    """Numbers of written tokens and of present ones where the hunk being written ended, if lines follow that stay."""

    @property
    def has_changed(self) -> bool:
        """Whether it differs from the present text."""
        return bool(self.hunks)

    def end(self, region: Region) -> tuple[int, int]:
        """Where the hunk being written has ended: numbers of written tokens and of present ones."""
        return self.back or (len(self.present.written), region.length)

    def branch(self) -> "WrittenRegion":
        """A copy that can be written on by itself."""
        return replace(self, present=self.present.copy(), hunks=[*self.hunks], probability=1.0, back=None)


def line_count(text: str) -> int:
    """The number of lines; the last one may have no line break."""
    return text.count("\n") + (not is_line_start(text))


def is_line_start(text: str) -> bool:
    return not text or text.endswith("\n")


def rewrite_of(request: RewriteRequest, read: ReadRegion, draft: WrittenRegion, regions: RegionReader) -> Rewrite:
    """The answer; a rewrite that did not end or makes no sense is not finished."""
    text = regions.text(read, request, draft.present) if draft.has_changed else request.text
    hunks = () if text is None or text == request.text else _hunks(draft, read, request.text, text)
    is_finished = text is not None and draft.ended
    return Rewrite(
        text=text if text is not None and is_finished else request.text,
        steps=draft.steps,
        is_finished=is_finished,
        tokens_read=read.context.cached.tokens_read,
        hunks=hunks,
    )


def _hunks(draft: WrittenRegion, read: ReadRegion, present: str, text: str) -> tuple[RegionHunk, ...]:
    """The hunks by the region's lines, of which the model may write the last ones only, or more that frame them."""
    above, count, lines = read.lines_above, len(lines_of(present)), lines_of(text)
    return tuple(
        RegionHunk(
            max(0, each.start + above),
            min(each.end + above, count),
            "".join(lines[max(0, each.new_start + above) : each.new_end + above]),
            each.probability,
        )
        for each in draft.hunks
    )
