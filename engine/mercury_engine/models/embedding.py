"""The embedding on a CPU: rows are unpacked when they are read, from the form in which the file stores them.

Dimensions: R rows, C width, V vocabulary.
"""

from pathlib import Path

import numpy as np
from mercury_kernels.cpu.blocks import BlockMatrix

from mercury_engine.models import weights
from mercury_engine.models.arrays import FloatArray, IdArray, MaskArray, bfloat16
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.quantized_weights import stored
from mercury_engine.models.weights import State, StoredArray

NAME = "model.embed_tokens.weight"


class Embedding:
    """The vocabulary's rows, rounded to bfloat16, and after them the rows of mask and end."""

    def __init__(self, state: State, config: ModelConfig, folder: Path) -> None:
        """Raises ModelCorrupt."""
        self._size, self._folder, self._factor = config.vocab_size, folder, np.float32(config.embedding_multiplier)
        self._parts: dict[str, StoredArray | BlockMatrix] = {
            name: state[name] for name in state if name == NAME or name.startswith(f"{NAME}.")
        }
        shape = config.vocab_size, config.hidden_size
        if stored(self._parts, [NAME], shape, folder) is None:
            whole = weights.checked(weights.unpack(self._parts, NAME, folder), shape, NAME, folder)
            self._parts = {NAME: whole.astype(bfloat16)}
        self.markers: FloatArray = np.zeros((2, config.hidden_size), np.float32)

    def rows(self, ids_R: IdArray) -> FloatArray:
        """Rows [R,C] of tokens, mask and end."""
        is_marker_R: MaskArray = ids_R >= self._size
        known_R = np.where(is_marker_R, 0, ids_R)
        picked = {name: part[known_R] for name, part in self._parts.items()}
        rows_RC = weights.unpack(picked, NAME, self._folder).astype(bfloat16).astype(np.float32)
        rows_RC *= self._factor
        if is_marker_R.any():
            rows_RC[is_marker_R] = self.markers[ids_R[is_marker_R] - self._size]
        return rows_RC
