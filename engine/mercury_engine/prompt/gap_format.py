"""Gap formats: the marker tokens that families of models were pretrained with to fill gaps (`gap_formats.toml`)."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from mercury_engine.prompt.layout import TokenIds


@dataclass(frozen=True, slots=True)
class GapFormat:
    """One family's markers; "" for a marker that the family does not have."""

    family: str
    prefix: str
    suffix: str
    middle: str
    start: str = ""
    """First token of every text."""
    end: str = "<|endoftext|>"
    """Token that ends the middle."""
    suffix_first: bool = False
    """Whether the suffix stands before the prefix."""

    @property
    def markers(self) -> set[str]:
        return {self.prefix, self.suffix, self.middle, self.start, self.end} - {""}


_TABLE = tomllib.loads(resources.files(__package__).joinpath("gap_formats.toml").read_text("utf-8"))
FORMATS = tuple(GapFormat(**each) for each in _TABLE["formats"])

MARKER_TEXTS = frozenset(text for family in FORMATS for text in family.markers)


@dataclass(frozen=True, slots=True)
class GapMarkers:
    """A format in the tokens of one tokenizer; a marker that the family lacks is empty."""

    family: str
    start: int
    """First token of a text; context blocks are read after it."""
    prefix: TokenIds
    """Empty where the prefix marker is the first token."""
    suffix: TokenIds
    middle: TokenIds
    end: int
    suffix_first: bool

    @property
    def ids(self) -> set[int]:
        """All tokens of the format; none of them is text."""
        return {self.start, *self.prefix, *self.suffix, *self.middle, self.end}

    def stack(self, head: TokenIds, rest: TokenIds, line: TokenIds) -> TokenIds:
        """The tokens read in one causal run before a canvas; `line`, which typing extends, comes last.

        `head` is the near prefix up to the cursor's line, `line` that line up to the cursor and `rest` its rest. Typed
        text counts as the beginning of the middle, so the model sees the rest of the line and a key adds only its own
        tokens.
        """
        lines, gap = self.parted(head, rest)
        return (*lines, *gap, *line)

    def parted(self, head: TokenIds, rest: TokenIds) -> tuple[TokenIds, TokenIds]:
        """The stack without the cursor's line: the part that stays while the line is edited, and the gap's markers.

        If the suffix comes first, the first part is empty.
        """
        if self.suffix_first:
            return (), (*self.suffix, *rest, *self.prefix, *head, *self.middle)
        return (*self.prefix, *head), (*self.suffix, *rest, *self.middle)


def find_markers(token_id: Callable[[str], int | None]) -> GapMarkers | None:
    """The markers of the first family whose tokens all exist; None if the vocabulary has no gap format.

    `token_id` returns the number of a token, or None.
    """
    for family in FORMATS:
        ids = {name: number for name in family.markers if (number := token_id(name)) is not None}
        if ids.keys() == family.markers:
            return GapMarkers(
                family.family,
                start=ids[family.start or family.prefix],
                prefix=(ids[family.prefix],) if family.start else (),
                suffix=(ids[family.suffix],),
                middle=(ids[family.middle],) if family.middle else (),
                end=ids[family.end],
                suffix_first=family.suffix_first,
            )
    return None


def split_line(near: str) -> tuple[str, str]:
    """A near prefix in two parts: the lines above the cursor's, and that line up to the cursor."""
    start = near.rfind("\n") + 1
    return near[:start], near[start:]
