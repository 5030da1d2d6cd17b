"""Run a causal model in its own gap format: all of the context in one causal run, decoded greedily left to right.

It keeps the keys and values of everything read, so every further token is one pass of the network over one row.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
from mercury_engine.api import Fill, FillRequest
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.arrays import Array, best, log_softmax, masked
from mercury_engine.models.network import ForwardRequest, KeyValueSegment, join
from mercury_engine.prompt.tokenizer import PrefixCut

from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import Gap


def has_peer_model(folder: Path | None) -> bool:
    """Whether the peer's folder holds a model; if not, stderr says how to get one."""
    if folder is not None and (folder / "config.json").is_file():
        return True
    reason = "no --peer given" if folder is None else f"{folder} holds no model"
    print(
        f"{reason}: the figures of Qwen2.5-Coder stay empty. To get them: python -m mercury_lab.training base "
        "--origin qwen2.5-coder-0.5b --out runs/qwen, then --peer runs/qwen",
        file=sys.stderr,
    )
    return False


class FillInTheMiddle:
    """Fills gaps with a model that has a gap format; it sees the same characters as Mercury."""

    def __init__(self, engine: Engine) -> None:
        self.network, self.tokenizer, self.name = engine.reader, engine.tokenizer, engine.name
        if self.tokenizer.markers is None:
            raise ModelCorrupt(f"the tokenizer of {self.name} has no markers of a gap format; name another folder")
        self._markers = self.tokenizer.markers

    def read(self, request: FillRequest) -> tuple[list[int], PrefixCut]:
        """The tokens of the context, and how the text before the gap was cut.

        An unfinished word before the cursor is removed from the prefix and must be spelled again, as in Mercury.
        """
        cut = self.tokenizer.cut("".join((*request.far, request.near)))
        after = self.tokenizer.encode("".join(request.suffix))
        return [self._markers.start, *self._markers.stack((*cut.read, *cut.known), tuple(after), ())], cut

    def __call__(self, gap: Gap) -> Fill:
        """Decode until a special token, or for a single-line gap until the end of the line."""
        started = time.perf_counter()
        request = gap.request
        ids, cut = self.read(request)
        side: KeyValueSegment | None = None
        text, written, confidence, position = "", list[int](), 1.0, 0
        while len(written) < request.max_slots:
            forward = ForwardRequest(np.array(ids), [side] if side else [], position)
            [(hidden, block)] = self.network.read_together([forward])
            fresh = self.network.rotated(block, position)
            side = join([side, fresh]) if side else fresh
            position += len(ids)
            [logp_V] = self.network.log_probabilities(hidden[-1:])
            logp_V = log_softmax(self._spelling(logp_V, cut.spell[len(self.tokenizer.decode(written)) :]))
            ids = [best(logp_V)]
            confidence *= math.exp(float(logp_V[ids[0]]))
            if ids[0] in self.tokenizer.special_ids:
                break
            written += ids
            text = self.tokenizer.decode(written)[len(cut.spell) :]
            if "\n" in text and not request.multiline:
                text = text.partition("\n")[0]
                break
        return Fill(text, confidence, len(written), time.perf_counter() - started)

    def _spelling(self, logp_V: Array, spell: str) -> Array:
        """Mask every token that does not continue the text still to be spelled, if there is any."""
        if not spell:
            return logp_V
        hidden_V = np.ones(len(logp_V), np.bool_)
        hidden_V[self.tokenizer.spelling(spell)] = False
        return masked(logp_V, hidden_V)
