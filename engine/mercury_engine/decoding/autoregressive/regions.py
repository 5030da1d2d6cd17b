"""Regions to rewrite, as the model sees them: their prompt, read through the cache, and the region in tokens.

A model of a family that was trained on edits reads that family's prompt, in one causal run. Others read the project's
layout: recent edits and the present text are the last far blocks, and the region is the gap.
"""

from dataclasses import dataclass

import numpy as np

from mercury_engine.api import FillRequest, RewriteRequest
from mercury_engine.decoding.autoregressive.drafting import Drafter, Drafters, NgramLookup
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.edit_families import Family, new_text
from mercury_engine.prompt.edit_layout import edit_blocks
from mercury_engine.prompt.layout import path_block
from mercury_engine.text.common_prefix import common_prefix
from mercury_engine.text.lines import lines_of

FOLLOWING_LETTERS = 12
"""Letters and digits of the text after a region that distinguish it from the region's own last lines."""

FOLLOWING_CHARS = 80
"""Most characters of the text after a region that are used."""

EARLY_END_ODDS = 10.0
"""A region ends at an arbitrary line, which a model cannot foresee, so it leaves out the last lines too easily."""

ADAPTER = "edit"
"""The adapter that rewrites."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region in tokens, and what stands around it."""

    request: RewriteRequest
    context: GapContext
    drafter: Drafter
    ids: list[int]
    """Its present text, then the beginning of the text after it: written after a line break, it ends the rewrite."""
    length: int
    """Tokens before the first one that reaches beyond the region."""
    follows: str
    """The text of the others; empty at a file's end."""
    drafted: int
    """Tokens that are drafted; models with a token that ends a gap need no draft of the text after it."""
    ends: IdArray
    """Tokens that end the rewrite; none of them is ever written."""
    late_ends: IdArray
    """Tokens that end it once nothing of the region is left: at a file's end a blank line does, too."""
    lines: int
    """Line breaks of its present text."""
    ends_anywhere: bool = False
    """Whether it may end inside a line, as at a file's end that has no line break."""
    early_end_odds: float = 1.0
    """How many times as likely as going on the end must be while present text is left."""
    lines_above: int = 0
    """Lines of the region before the first one that is written again; negative: lines that frame it."""


class RegionReader:
    """Reads regions for one model, in its edit format or in the project's layout."""

    def __init__(
        self,
        contexts: ContextReader,
        drafters: Drafters,
        rules: GapRules,
        family: Family | None = None,
    ) -> None:
        self._contexts, self._drafters, self._tokenizer = contexts, drafters, contexts.tokenizer
        self._rules, self._family = rules, family

    @property
    def edit_format(self) -> str | None:
        """The name of the model's family, "mercury" for one with an adapter; None if it has neither."""
        if self._family is not None:
            return self._family.name
        return "mercury" if ADAPTER in self._contexts.cache.network.adapters else None

    def read(self, request: RewriteRequest) -> ForwardSteps[Region | None]:
        """Read what is new of the prompt; None for a region that spells a marker of the model's family."""
        if self._family is None:
            return (yield from self._read_as_gap(request))
        window = self._family.clean(request)
        return None if window is None else (yield from self._read_window(self._family, window))

    def text(self, region: Region, written: list[int], has_all: bool) -> str | None:
        """The text in place of a changed region, perhaps written with all that follows it.

        None if it makes no sense, or if the tokenizer would alter the region.
        """
        request, encode, decode = region.request, self._tokenizer.encode, self._tokenizer.decode
        if decode(encode(request.text)) != request.text:
            return None
        text = decode(written)
        text = text.removesuffix(region.follows) if has_all else text
        return text if self._family is None else new_text(self._family, request, text, is_exact=True)

    def _read_as_gap(self, request: RewriteRequest) -> ForwardSteps[Region]:
        markers, encode = self._contexts.markers, self._tokenizer.encode
        far, near = _with_line_above(request)
        gap = FillRequest(
            near=near,
            far=(*far, *edit_blocks(request.history, request.text, request.language)),
            suffix=request.suffix,
            multiline=True,
            adapter=ADAPTER,
        )
        ids_near = list(self._tokenizer.block(near)) if markers is None else []
        context = yield from self._contexts.read(gap, ids_near)
        present, follows = encode(request.text), following(request)
        # without markers it writes on beyond the region, where a line break may be one token with the next ones
        ids = encode(request.text + follows) if markers is None else present + encode(follows)
        length, ends = common_prefix(ids, present), self._rules.ends_text
        return Region(
            request,
            context,
            (yield from self._drafters.of(context, gap)),
            ids,
            length,
            follows,
            drafted=len(ids) if markers is None else length,
            ends=ends,
            late_ends=ends if follows else np.concatenate((ends, self._rules.breaks)),
            lines=request.text.count("\n"),
            ends_anywhere=bool(request.text) and not request.text.endswith("\n"),
            early_end_odds=EARLY_END_ODDS,
        )

    def _read_window(self, family: Family, window: RewriteRequest) -> ForwardSteps[Region]:
        tokenizer, cache = self._tokenizer, self._contexts.cache
        ids = tuple(tokenizer.encode_prompt(family.prompt(window), family.markers))
        context = yield from cache.context([], ids, [])
        echo = family.echo(window)
        present = tokenizer.encode_prompt(echo, family.markers)
        special = np.array(sorted(tokenizer.special_ids | {cache.start_id}), np.int64)
        ends = (each for each in reversed(family.stop) if not tokenizer.special_ids.issuperset(tokenizer.token(each)))
        follows = next(ends, "")  # a token ends the rewrite by itself
        joined = tokenizer.encode_prompt(echo + follows, family.markers)
        return Region(
            window,
            context,
            Drafter(ids, NgramLookup()),
            joined,
            common_prefix(joined, present),
            follows,
            drafted=len(joined),
            ends=special,
            late_ends=special,
            lines=echo.count("\n"),
            ends_anywhere=True,
            lines_above=len(lines_of(window.text)) - len(lines_of(echo)),
        )


def _with_line_above(request: RewriteRequest) -> tuple[tuple[str, ...], str]:
    """The far blocks and the near prefix; above a file's first line that is the line with its path.

    Without it the region would directly follow its own old version, and models begin it with a blank line.
    """
    path = path_block(request.path, request.language)
    return (request.far, request.near) if request.near else (tuple(b for b in request.far if b != path), path)


def following(request: RewriteRequest) -> str:
    """The beginning of the text after the region, up to a word in a line; empty at a file's end."""
    text = ""
    for line in "".join(request.suffix)[: 8 * FOLLOWING_CHARS].splitlines(keepends=True):
        text += line
        if sum(map(str.isalnum, text)) >= FOLLOWING_LETTERS:
            break
    return text[:FOLLOWING_CHARS].rstrip()
