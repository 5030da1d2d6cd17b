"""Regions to rewrite, as the reader sees them: their prompt, read through the cache, and the region in tokens.

A model that was trained on an edit format of its own reads that, in one causal run. Others read the project's layout:
recent edits and the present text are the last far blocks, and the region is the gap.
"""

from typing import NamedTuple

import numpy as np

from mercury_engine.api import FillRequest, RewriteRequest
from mercury_engine.denoising.context_reader import ContextReader
from mercury_engine.denoising.ngram_lookup import NgramLookup
from mercury_engine.denoising.rewriting import Draft, Region
from mercury_engine.denoising.stopping import StoppingCriteria
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.models.arrays import IdArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.edit_formats.edit_format import EditFormat
from mercury_engine.prompt.edit_formats.rendering import Rendered, answer, render
from mercury_engine.prompt.edit_layout import edit_blocks
from mercury_engine.prompt.layout import path_block
from mercury_engine.text.common_prefix import common_prefix

FOLLOWING_LETTERS = 12
"""Letters and digits of the text behind a region that tell it from the region's own last lines."""

FOLLOWING_CHARS = 80
"""Most characters of it."""

EARLY_END_ODDS = 10.0
"""A region is cut around a place, so the model can't know its last lines as an end, and leaves them out too easily."""

ADAPTER = "edit"
"""The adapter that rewrites."""


class ReadRegion(NamedTuple):
    """A region, and what stands around it."""

    region: Region
    context: CanvasContext
    rendered: Rendered | None = None
    """The prompt in the model's own edit format."""


class RegionReader:
    """Reads regions for one model, in its edit format or in the project's layout."""

    def __init__(
        self, context_reader: ContextReader, stopping: StoppingCriteria, edit_format: EditFormat | None = None
    ) -> None:
        self._reader, self._tokenizer = context_reader, context_reader.tokenizer
        self._stopping, self._format = stopping, edit_format

    @property
    def family(self) -> str | None:
        """The family of the model's edit format, "mercury" for one with an adapter; None if it has neither."""
        if self._format is not None:
            return self._format.family
        return "mercury" if ADAPTER in self._reader.cache.network.adapters else None

    def read(self, request: RewriteRequest) -> ForwardSteps[ReadRegion | None]:
        """Read what is new of the prompt; None for a region that may not be sent, see `edit_formats.rendering`."""
        if self._format is None:
            return (yield from self._read_as_gap(request))
        rendered = render(self._format, request)
        return None if rendered is None else (yield from self._read_whole(request, self._format, rendered))

    def text(self, read: ReadRegion, request: RewriteRequest, draft: Draft) -> str | None:
        """The text in place of the region; None if it makes no sense, or if the tokenizer would alter the region."""
        if not draft.has_changed:
            return request.text
        if self._tokenizer.decode(self._tokenizer.encode(request.text)) != request.text:
            return None
        written = self._tokenizer.decode(draft.present.written)
        text = written.removesuffix(read.region.follows) if draft.present.has_all else written
        if self._format is None or read.rendered is None:
            return text
        return answer(self._format, read.rendered, text)

    def _read_as_gap(self, request: RewriteRequest) -> ForwardSteps[ReadRegion]:
        markers, encode = self._reader.markers, self._tokenizer.encode
        far, near = _with_line_above(request)
        gap = FillRequest(
            near=near,
            far=(*far, *edit_blocks(request.history, request.text, request.language)),
            suffix=request.suffix,
            multiline=True,
            deadline_ms=request.deadline_ms,
            adapter=ADAPTER,
            cancel=request.cancel,
        )
        ids_near = list(self._tokenizer.block(near)) if markers is None else []
        context = yield from self._reader.read(gap, ids_near, 0)
        ids, follows = encode(request.text), following(request)
        if markers is None:  # it writes on behind the region, where a line break may be one token with the next ones
            joined = encode(request.text + follows)
            length = common_prefix(joined, ids)
            ids = joined
        else:
            length = len(ids)
            ids = ids + encode(follows)
        region = Region(
            ids,
            length,
            follows,
            drafted=len(ids) if markers is None else length,
            ends=self._stopping.ends_text,
            late_ends=self._stopping.ends_text if follows else self._ends_of_file(),
            lines=request.text.count("\n"),
            ends_anywhere=bool(request.text) and not request.text.endswith("\n"),
            early_end_odds=EARLY_END_ODDS,
        )
        return ReadRegion(region, context)

    def _read_whole(
        self, request: RewriteRequest, edit_format: EditFormat, rendered: Rendered
    ) -> ForwardSteps[ReadRegion]:
        tokenizer, cache = self._tokenizer, self._reader.cache
        pieces = (
            tokenizer.token(each.text) if each.is_token else tokenizer.block(each.text) for each in rendered.pieces
        )
        ids = tuple(token for piece in pieces for token in piece)
        context = yield from cache.context([], ids[:-1], [])
        present = tokenizer.encode(rendered.present + edit_format.end)
        special = np.array(sorted(tokenizer.special_ids | {cache.start_id}), np.int64)
        region = Region(
            present,
            common_prefix(present, tokenizer.encode(rendered.present)),
            edit_format.end,
            drafted=len(present),
            ends=special,
            late_ends=special,
            lines=rendered.present.count("\n"),
            ends_anywhere=True,
        )
        return ReadRegion(region, CanvasContext(context, ids, ids, 0, NgramLookup()), rendered)

    def _ends_of_file(self) -> IdArray:
        return np.concatenate((self._stopping.ends_text, self._stopping.breaks))


def _with_line_above(request: RewriteRequest) -> tuple[tuple[str, ...], str]:
    """The far blocks and the near prefix; above a file's first line that is the line with its path.

    Without it the region would directly follow its own old version, and models begin it with a blank line.
    """
    path = path_block(request.path, request.language)
    return (request.far, request.near) if request.near else (tuple(b for b in request.far if b != path), path)


def following(request: RewriteRequest) -> str:
    """The beginning of the text behind the region, up to a word in a line; empty at a file's end."""
    text = ""
    for line in "".join(request.suffix)[: 8 * FOLLOWING_CHARS].splitlines(keepends=True):
        text += line
        if sum(map(str.isalnum, text)) >= FOLLOWING_LETTERS:
            break
    return text[:FOLLOWING_CHARS].rstrip()
