"""Regions to rewrite, as the reader sees them: their prompt read through the cache, and the region in tokens."""

from typing import NamedTuple

from mercury_engine.api import FillRequest, RewriteRequest
from mercury_engine.denoising.context_reader import ContextReader
from mercury_engine.denoising.rewriting import Region
from mercury_engine.denoising.stopping import StoppingCriteria
from mercury_engine.denoising.verifier import CanvasContext
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.edit_layout import edit_blocks
from mercury_engine.text.common_prefix import common_prefix

FOLLOWING_LETTERS = 12
"""Letters and digits of the text behind a region that tell it from the region's own last lines."""

FOLLOWING_CHARS = 80
"""Most characters of it."""


class ReadRegion(NamedTuple):
    """A region, and what stands around it."""

    region: Region
    context: CanvasContext


def read_region(
    request: RewriteRequest, context_reader: ContextReader, stopping: StoppingCriteria
) -> ForwardSteps[ReadRegion]:
    """The region in the project's own layout: edits and present text are the last far blocks, the region is the gap."""
    tokenizer, markers = context_reader.tokenizer, context_reader.markers
    blocks = edit_blocks(request.history, request.text, request.language)
    gap = FillRequest(
        near=request.near,
        far=(*request.far, *blocks),
        suffix=request.suffix,
        multiline=True,
        deadline_ms=request.deadline_ms,
        cancel=request.cancel,
    )
    context = yield from context_reader.read(gap, list(tokenizer.block(request.near)) if markers is None else [], 0)
    follows = following(request)
    if markers is None:  # it writes on behind the region, where a line break may be one token with the next ones
        ids = tokenizer.encode(request.text + follows)
        length = common_prefix(ids, tokenizer.encode(request.text))
    else:
        ids = tokenizer.encode(request.text)
        length = len(ids)
        ids += tokenizer.encode(follows)
    region = Region(
        ids,
        length,
        follows,
        drafted=len(ids) if markers is None else length,
        ends=stopping.ends_text,
        lines=request.text.count("\n"),
        is_whole=request.text.endswith("\n") or not request.text,
    )
    return ReadRegion(region, context)


def following(request: RewriteRequest) -> str:
    """The beginning of the text behind the region, up to a word in a line; empty at a file's end."""
    text = ""
    for line in "".join(request.suffix)[: 8 * FOLLOWING_CHARS].splitlines(keepends=True):
        text += line
        if sum(map(str.isalnum, text)) >= FOLLOWING_LETTERS:
            break
    return text[:FOLLOWING_CHARS].rstrip()
