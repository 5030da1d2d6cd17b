"""Where an editor started its server: not necessarily where this process was started."""

import os
from typing import NamedTuple

from mercury_lsp.daemon import handshake


class EditorOrigin(NamedTuple):
    """An editor's folder, which is sent to the daemon, and its environment, which a new daemon inherits."""

    folder: str
    environment: dict[str, str]

    @classmethod
    def here(cls) -> "EditorOrigin":
        """The origin of this process."""
        return cls(handshake.here(), dict(os.environ))

    @classmethod
    def parse(cls, line: bytes) -> "EditorOrigin":
        """A caller's origin. Raises ValueError."""
        match handshake.decode(line):
            case {"folder": str(folder), "environment": dict(environment), **rest} if not rest:
                if all(isinstance(value, str) for value in environment.values()):
                    return cls(folder, environment)
        raise ValueError("not an origin")
