"""The JSON files of a model's folder, read within bounds: they may come from anywhere."""

import json
from pathlib import Path
from typing import Any

from mercury_engine.errors import ModelCorrupt

MOST_BYTES = 2**26
"""Of a model's JSON file; the largest known tokenizers take 35 MB."""


def read(path: Path, mend: str = "fetch the model again") -> Any:
    """What the file holds. Raises ModelCorrupt, whose message ends with `mend`."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ModelCorrupt(f"{path} has {size:,} bytes, no known model has {MOST_BYTES:,}; {mend}")
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ModelCorrupt(f"{path} cannot be read ({error}); {mend}") from error
