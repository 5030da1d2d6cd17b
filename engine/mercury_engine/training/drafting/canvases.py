"""Canvases that draft: a known token and masked slots after it, at many places of a window that is prefilled once.

A canvas sees the window up to its place and nothing after it. Its known token is the last one it sees; the hidden
state of each row predicts the token of the next row.

Dimensions: P places, S slots, T tokens of the window, C width, V vocabulary with mask and end.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mercury_engine.models.decoder import Decoder, PositionFrames, packing_bias
from mercury_engine.models.network import KeyValueBlock, KeyValueSegment, Packing, join
from mercury_engine.training.drafting.kernel_reader import KernelReader
from mercury_engine.training.drafting.windows import Window
from mercury_engine.training.optimisation.prefill import read_start, side_by_side


@dataclass(frozen=True, slots=True)
class WindowReading:
    """A prefilled window."""

    segment: KeyValueSegment
    """The start token and the window, in the writer's dtype."""
    hidden: Tensor
    """[T,C] in the writer's dtype."""
    start: KeyValueSegment
    """The start token, in the reader's dtype."""
    near: KeyValueSegment
    """The window, in the reader's dtype."""


@torch.no_grad()
def read_window(
    writer: Decoder, window: Window, start_id: int, reader: Decoder | KernelReader | None = None
) -> WindowReading:
    """Prefill a window after the start token, with `reader`, or else with the writer's own network."""
    if isinstance(reader, KernelReader):
        return _read_by_kernels(writer, window, start_id, reader)
    reader = reader or writer
    start = read_start(reader, start_id)
    past = side_by_side(reader, [start], leading=True)
    hidden, block = reader.read(torch.tensor([window.tokens], device=writer.device), [past])
    dtype = writer.embedding.dtype
    segment = _in_dtype(writer, [start, block], dtype)
    return WindowReading(segment, hidden[0].to(dtype), past, reader.rotated(block, 0))


def _read_by_kernels(writer: Decoder, window: Window, start_id: int, reader: KernelReader) -> WindowReading:
    dtype = writer.embedding.dtype
    start = reader.read([start_id]).block
    past = reader.rotated(start, -1)
    hidden, block = reader.read(window.tokens, [past])
    segment = _in_dtype(writer, [reader.tensors(start), reader.tensors(block)], dtype)
    return WindowReading(segment, hidden.to(dtype), past, reader.rotated(block, 0))


def _in_dtype(writer: Decoder, blocks: Sequence[KeyValueBlock], dtype: torch.dtype) -> KeyValueSegment:
    """The blocks of the start token and of the window as one segment of the writer's."""
    converted = [KeyValueBlock(each.keys.to(dtype), each.values.to(dtype)) for each in blocks]
    return join([writer.rotated(each, position) for each, position in zip(converted, (-1, 0), strict=True)])


def write_drafts(writer: Decoder, window: Window, reading: WindowReading, slots: int) -> Tensor:
    """The writer's hidden states [P,S,C] that predict the slots of all canvases, each fully masked."""
    device = reading.hidden.device
    places = torch.tensor(window.places, device=device)
    known = torch.tensor(window.tokens, device=device)[places]
    ids = torch.cat((known[:, None], known.new_full((len(places), slots), writer.config.mask_id)), 1)
    row = torch.arange(slots + 1, device=device).expand_as(ids)
    canvas = torch.arange(len(places), device=device)[:, None].expand_as(ids)
    packing = Packing(canvas.reshape(1, -1), row.reshape(1, -1), torch.full_like(row, slots + 1).reshape(1, -1))
    near = writer.angles((places[:, None] + row).reshape(1, 1, 1, -1))
    before = _visible(writer, reading.segment, places.repeat_interleave(slots + 1))
    frames = PositionFrames(near, None, packing_bias(packing, writer.groups))
    hidden, _ = writer.run(writer.embed(ids.reshape(1, -1)), frames, [before], (), adapted=True)
    return hidden.view(len(places), slots + 1, -1)[:, :-1]


@dataclass(frozen=True, slots=True)
class DraftTargets:
    """What canvases should predict: tokens [P,S], and the reader's log-probabilities [P,S,V-2] of each slot."""

    tokens: Tensor
    log_probabilities: Tensor


@torch.no_grad()
def text_targets(reader: Decoder | KernelReader, window: Window, reading: WindowReading, slots: int) -> DraftTargets:
    """The window's own text, and the reader's predictions given all text before each token."""
    device = reading.hidden.device
    at = torch.tensor(window.places, device=device)[:, None] + torch.arange(slots, device=device)
    tokens = torch.tensor(window.tokens, device=device)[at + 1]
    logits = reader.logits(reading.hidden[at.flatten()])
    return DraftTargets(tokens, logits.view(*at.shape, -1).log_softmax(-1))


@torch.no_grad()
def reader_targets(reader: Decoder | KernelReader, window: Window, reading: WindowReading, slots: int) -> DraftTargets:
    """The reader's greedy continuation of each place."""
    places = torch.tensor(window.places, device=reading.hidden.device)
    logits = [reader.logits(reading.hidden[places])]
    tokens = [logits[0].argmax(-1)]
    if isinstance(reader, KernelReader):
        continuations = _read_apart(reader, places, reading)
    else:
        continuations = _read_packed(reader, places, reading)
    next(continuations)
    for _ in range(1, slots):
        logits.append(reader.logits(continuations.send(tokens[-1])))
        tokens.append(logits[-1].argmax(-1))
    return DraftTargets(torch.stack(tokens, 1), torch.stack(logits, 1).log_softmax(-1))


def _read_packed(reader: Decoder, places: Tensor, reading: WindowReading) -> Generator[Tensor, Tensor, None]:
    """Receives the next token of every place [P] and yields the hidden states after them [P,C], in one packed run.

    The first value yielded is empty.
    """
    number = torch.arange(len(places), device=places.device)[None]
    apart = packing_bias(Packing(number, torch.zeros_like(number), torch.ones_like(number)), reader.groups)
    past = [_visible(reader, reading.segment, places + 1)]
    hidden, at = reading.hidden[:0], places
    while True:
        tokens_P = yield hidden
        at = at + 1
        frames = PositionFrames(reader.angles(at[None, None, None]), None, apart)
        rows, block = reader.run(reader.embed(tokens_P[None]), frames, past, (), adapted=False)
        assert block is not None, "rows of a single frame return their block"
        segment = reader.placed(block, at)
        past.append(KeyValueSegment(segment.keys, segment.values, apart))
        hidden = rows[0]


def _read_apart(reader: KernelReader, places: Tensor, reading: WindowReading) -> Generator[Tensor, Tensor, None]:
    """As `_read_packed`, with a forward request per place; the C kernels run them all in one pass."""
    ends, near = places.tolist(), reading.near
    prefixes = [KeyValueSegment(near.keys[:, :, :, : p + 1], near.values[:, :, :, : p + 1]) for p in ends]
    pasts = [[reading.start, prefix] for prefix in prefixes]
    hidden, ahead = reading.hidden[:0], 0
    while True:
        tokens_P = yield hidden
        ahead += 1
        hidden, blocks = reader.read_each(tokens_P.tolist(), pasts, [p + ahead for p in ends])
        for past, place, block in zip(pasts, ends, blocks, strict=True):
            past.append(reader.rotated(block, place + ahead))


def _visible(network: Decoder, segment: KeyValueSegment, tokens_R: Tensor) -> KeyValueSegment:
    """A window's segment with a bias: each row sees the start token and the first `tokens_R` tokens after it."""
    column = torch.arange(segment.keys.shape[3], device=tokens_R.device)
    hidden = column[None] > tokens_R[:, None]
    bias = torch.zeros(hidden.shape, device=tokens_R.device).masked_fill(hidden, float("-inf"))
    return KeyValueSegment(segment.keys, segment.values, bias.repeat(network.groups, 1)[None, None])


def correct_tokens(drafts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> list[int]:
    """The number of tokens of each draft that match the text, up to the first that does not."""
    found = []
    for draft, text in zip(drafts, texts, strict=True):
        same = [one == other for one, other in zip(draft, text, strict=False)]
        found.append(same.index(False) if False in same else len(same))
    return found
