"""Gap formats: the marker tokens that families of models were pretrained with to fill gaps.

A tokenizer with a family's markers implies that the model knows its format. Sources, as of 2026-11:

- qwen2.5-coder: technical report, arXiv 2409.12186, figures 3 and 4
- granite-4: IBM's prompt guide for the end; the markers from memory, not checked at a source
- starcoder: model cards of StarCoder, arXiv 2305.06161; StarCoder2 and Granite Code use the same markers
- codellama: `tokenization_code_llama.py` of transformers, arXiv 2308.12950
- deepseek-coder: README of DeepSeek-Coder, arXiv 2401.14196; start and end from memory, not checked
- codestral: test of `encode_fim` in mistral-common; no marker stands before the middle; the end from memory
- seed-coder: technical report, arXiv 2506.03524; start and end from its tokenizer's configuration
"""

from collections.abc import Callable
from dataclasses import dataclass

TokenIds = tuple[int, ...]


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


FORMATS = (
    GapFormat("qwen2.5-coder", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    GapFormat("granite-4", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", end="<|end_of_text|>"),
    GapFormat("starcoder", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    GapFormat("codellama", "▁<PRE>", "▁<SUF>", "▁<MID>", start="<s>", end="▁<EOT>"),
    GapFormat(
        "deepseek-coder",
        "<｜fim▁begin｜>",
        "<｜fim▁hole｜>",
        "<｜fim▁end｜>",
        start="<｜begin▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
    ),
    GapFormat(
        "seed-coder",
        "<[fim-prefix]>",
        "<[fim-suffix]>",
        "<[fim-middle]>",
        start="<[begin▁of▁sentence]>",
        end="<[end▁of▁sentence]>",
        suffix_first=True,
    ),
    GapFormat("codestral", "[PREFIX]", "[SUFFIX]", "", start="<s>", end="</s>", suffix_first=True),
)


MARKER_TEXTS = frozenset(
    text
    for family in FORMATS
    for text in (family.prefix, family.suffix, family.middle, family.start, family.end)
    if text
)


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
        found = _markers(family, token_id)
        if found is not None:
            return found
    return None


def split_line(near: str) -> tuple[str, str]:
    """A near prefix in two parts: the lines above the cursor's, and that line up to the cursor."""
    start = near.rfind("\n") + 1
    return near[:start], near[start:]


def _markers(family: GapFormat, token_id: Callable[[str], int | None]) -> GapMarkers | None:
    ids = {}
    for name in filter(None, (family.start, family.prefix, family.suffix, family.middle, family.end)):
        if (number := token_id(name)) is None:
            return None
        ids[name] = (number,)
    suffix, middle = ids[family.suffix], ids.get(family.middle, ())
    [start] = ids.get(family.start, ids[family.prefix])
    prefix = ids[family.prefix] if family.start else ()
    return GapMarkers(family.family, start, prefix, suffix, middle, ids[family.end][0], family.suffix_first)
