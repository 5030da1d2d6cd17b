"""Where an editor started its server, which need not be where we were started."""

import os
from typing import NamedTuple

from mercury_lsp.daemon import handshake


class EditorOrigin(NamedTuple):
    """What the daemon is told of an editor, or started with for it."""

    folder: str
    environment: dict[str, str]

    @classmethod
    def here(cls) -> "EditorOrigin":
        """Our own."""
        return cls(handshake.here(), dict(os.environ))

    @classmethod
    def parse(cls, line: bytes) -> "EditorOrigin":
        """That of a caller. Raises ValueError."""
        match handshake.decode(line):
            case {"folder": str(folder), "environment": dict(environment), **rest} if not rest:
                if all(isinstance(value, str) for value in environment.values()):
                    return cls(folder, environment)
        raise ValueError("not an origin")
