"""Arrays whose memory can be handed back because a temporary file holds them as well.

OpenVINO copies weights into layouts of its own and then keeps the originals, never read again, for as long as the
network lives: 240 MB of the bundled model. Laid in a file, they cost no memory, and can be read should it ask again.
"""

import mmap
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


class Spill:
    """Arrays mapped from one temporary file, which is deleted with the process."""

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []

    def array(self, source: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The same values, mapped from a file that has no name. Raises OSError when the disk is full."""
        values = np.ascontiguousarray(source)
        if not values.nbytes:
            return values
        with tempfile.TemporaryFile(prefix="mercury-") as file:
            file.write(values.data)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._maps.append(mapped)
        return np.frombuffer(mapped, values.dtype).reshape(values.shape)

    def release(self) -> None:
        """Let go of the memory; what is read again comes from the file. Without effect where the system can't."""
        for mapped in _where_possible(self._maps):
            mapped.madvise(mmap.MADV_DONTNEED)


def _where_possible(maps: Iterable[mmap.mmap]) -> Iterable[mmap.mmap]:
    return maps if hasattr(mmap, "MADV_DONTNEED") else ()
