"""A network without weights: a script says what comes next, and every pass is counted."""

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import numpy as np
from mercury_engine.loading import ModelParts
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_engine.prompt.edit_families import Family
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.asking import answered

Script = Callable[[list[int]], Mapping[int, float]]
"""All tokens before the next one -> the probabilities of the next one."""

UNLIKELY = 1e-9


class ScriptedNetwork:
    """Keys and values are the tokens themselves, so a row knows all that it sees."""

    backend, device = "scripted", "cpu"
    adapters: Sequence[str] = ()

    def __init__(self, vocab_size: int, script: Script) -> None:
        self.config, self.script = tiny.config(vocab_size), script
        self.passes: list[list[int]] = []
        """Rows of every forward of every pass."""
        self.on_pass: Callable[[], None] = lambda: None

    def rest(self) -> None: ...

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[tuple[np.ndarray, KeyValueBlock]]:
        self.passes.append([forward.rows for forward in forwards])
        self.on_pass()
        return [self._read(forward) for forward in forwards]

    def read_in_parts(self, forward: ForwardRequest) -> Generator[None, None, tuple[np.ndarray, KeyValueBlock]]:
        yield from ()
        return self.read_together([forward])[0]

    def _read(self, forward: ForwardRequest) -> tuple[np.ndarray, KeyValueBlock]:
        ids = forward.ids_T.tolist()
        owner = np.repeat(np.arange(len(forward.lengths)), forward.lengths)
        past = [int(token) for side in forward.past for token in side.keys.ravel()]
        hidden = np.empty((len(ids), 1), object)
        for row in range(len(ids)):
            own = [token for token, other in zip(ids[: row + 1], owner, strict=False) if other == owner[row]]
            hidden[row, 0] = [*past, *own]
        keys = np.array(ids).reshape(1, 1, 1, -1, 1)
        return hidden, KeyValueBlock(keys, keys)

    def log_probabilities(self, hidden_RC: np.ndarray) -> np.ndarray:
        logp = np.full((len(hidden_RC), self.config.vocab_size), np.log(UNLIKELY), np.float32)
        for row, [before] in enumerate(hidden_RC):
            for token, chance in self.script(before).items():
                logp[row, token] = np.log(chance)
        return logp

    def answers(
        self, hidden_WC: np.ndarray, questions: Sequence[RowQuestion], is_canvas: bool = False
    ) -> list[RowAnswers]:
        assert not is_canvas, "a causal model"
        parts = np.split(self.log_probabilities(hidden_WC), np.cumsum([each.rows for each in questions])[:-1])
        return [answered(part, question) for part, question in zip(parts, questions, strict=True)]

    def told_ahead(self, forward: ForwardRequest) -> None:
        return None

    def kept(self, block: KeyValueBlock) -> KeyValueBlock:
        return block

    def rotated(self, block: KeyValueBlock, start: int) -> KeyValueSegment:
        return KeyValueSegment(block.keys, block.values)

    def side_by_side(self, blocks: Sequence[KeyValueBlock], start: int) -> KeyValueSegment:
        keys = np.concatenate([block.keys for block in blocks], 3)
        return KeyValueSegment(keys, keys)


def engine(folder: Path, markers: Sequence[str] = (), family: Family | None = None) -> tuple[Engine, ScriptedNetwork]:
    """An engine around a scripted network with the tokenizer of tiny models; the test sets its script."""
    folder.mkdir(parents=True, exist_ok=True)
    tiny.tokenizer(markers=markers).save(str(folder / "tokenizer.json"))
    tokenizer = Tokenizer(folder)
    network = ScriptedNetwork(500 + len(markers), lambda before: {})
    made = Engine(ModelParts(folder, network, tokenizer, markers=tokenizer.markers, edit_family=family))
    return made, network


def writes(tokenizer: Tokenizer, text: str, end: Mapping[int, float], behind: Sequence[int] = ()) -> Script:
    """A script that writes the text behind the first place where the tokens `behind` end, then the `end`."""
    ids = tokenizer.encode(text)

    def script(before: list[int]) -> Mapping[int, float]:
        written = _since(before, behind)
        if written == ids[: len(written)]:
            return end if len(written) == len(ids) else {ids[len(written)]: 0.99}
        return {ids[min(len(written), len(ids) - 1)]: 0.99}

    return script


def _since(before: list[int], behind: Sequence[int]) -> list[int]:
    size = len(behind)
    at = max(at for at in range(len(before) - size + 1) if before[at : at + size] == list(behind)) + size
    return before[at:]
