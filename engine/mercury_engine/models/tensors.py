"""A model's tensors from either kind of file, checked as they are read.

Names are those of the Hugging Face checkpoints. A tensor is a `BlockMatrix`, which holds its values as they are stored.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from mercury_kernels.cpu.blocks import BlockMatrix, Floats

from mercury_engine.errors import ModelCorrupt


class Tensors(Mapping[str, BlockMatrix]):
    """Tensors by name; a vector is a matrix of one row. The methods raise ModelCorrupt for missing or damaged ones."""

    path: Path
    """The file or folder, for messages."""

    def matrix(self, name: str) -> BlockMatrix:
        """A tensor as it is stored."""
        try:
            return self[name]
        except (OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ModelCorrupt(
                f"{name} in {self.path} is missing or damaged ({error!r}); fetch or export it again"
            ) from error

    def parts(self, names: Sequence[str], shape: tuple[int, int]) -> list[BlockMatrix]:
        """The tensors that make up a matrix [out,in], one below the other."""
        parts = [self.matrix(name) for name in names]
        found = sum(part.outputs for part in parts), *{part.inputs for part in parts}
        if found != shape:
            raise ModelCorrupt(
                f"{' + '.join(names)} in {self.path} has shape {list(found)}, the configuration asks for "
                f"{list(shape)}; the files do not belong together"
            )
        return parts

    def floats(self, name: str, *shape: int) -> Floats:
        """The finite values of a vector or a matrix of this shape."""
        [matrix] = self.parts([name], (shape[0] if len(shape) == 2 else 1, shape[-1]))
        return self.finite(name, matrix.floats()).reshape(shape)

    def finite(self, name: str, values: Floats) -> Floats:
        """The values of a tensor, if all of them are finite."""
        with np.errstate(over="ignore", invalid="ignore"):  # a finite sum is proof, and faster than a look at each
            if not (np.isfinite(values.sum(dtype=np.float32)) or np.isfinite(values).all()):
                raise ModelCorrupt(
                    f"{name} in {self.path} holds values that are not finite; fetch or export the model again"
                )
        return values

    def product(self, name: str, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        """The factors [rank,in] and [out,rank] of a low-rank change to a matrix [out,in]."""
        rank = self.matrix(f"{name}.down").outputs
        return self.floats(f"{name}.down", rank, shape[1]), self.floats(f"{name}.up", shape[0], rank)
