"""Measures a model on this machine, in a process of its own: `python -m mercury_lsp.installed_models.measuring FOLDER`.

A process of its own has only this model's memory, and a model that is too large ends it and nothing else.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median

from mercury_engine.api import Fill, FillRequest, InferenceEngine
from mercury_engine.errors import MercuryError, ModelError
from mercury_engine.models import memory

from mercury_lsp.engine_host.loading import filled, load_engine
from mercury_lsp.installed_models.store import Measurement
from mercury_lsp.settings import Settings

TOO_LARGE = "close other programs, or choose a smaller model: mercury-lsp models list"
"""What to do if a model does not fit into memory."""

PLACES = 5
"""Places in the sample text at which keys are typed."""

KEYS = 6
"""Keys typed at each place."""

REST = ("\n\n\ndef main():\n    return 0\n",)
"""Code after the cursor."""


def measured(folder: Path | None) -> Measurement:
    """The measurement of a model folder, None for the bundled model. Raises ModelError if the model does not run."""
    command = [sys.executable, "-m", "mercury_lsp.installed_models.measuring", *([str(folder)] if folder else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return Measurement(**json.loads(done.stdout))
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    if done.returncode < 0 or "MemoryError" in said:
        how = signal.Signals(-done.returncode).name if done.returncode < 0 else said
        raise ModelError(
            f"the process that tried the model ended ({how}), most likely because memory ran out; {TOO_LARGE}"
        )
    raise ModelError(f"this version cannot run the model: {said}")


def measure(engine: InferenceEngine) -> Measurement:
    """Type in this module's own text, and take the median fill and the median pass."""
    text = Path(__file__).read_text("utf-8")
    places = [len(text) * number // PLACES - KEYS for number in range(1, PLACES)]
    fills = [fill for place in places for fill in _typed(engine, text, place)]
    passes = [fill.elapsed / max(1, fill.steps) for fill in fills]
    elapsed = [fill.elapsed for fill in fills]
    pass_ms, answer_ms = (round(median(seconds) * 1000, 2) for seconds in (passes, elapsed))
    return Measurement(pass_ms, answer_ms, memory.resident_mb(), date.today().isoformat())


def _typed(engine: InferenceEngine, text: str, place: int) -> Sequence[Fill]:
    """The fill after each key, as an editor asks for it; the first one, which reads the text before, is left out."""
    ends = range(place, place + KEYS + 1)
    requests = [FillRequest(near=text[:end], suffix=REST, utility=engine.utility) for end in ends]
    return [filled(engine, request) for request in requests][1:]


def main(argv: Sequence[str]) -> int:
    """Print the measurement as JSON; 2 if the model does not run, with the reason as the last line of stderr."""
    try:
        found = measure(load_engine(Settings(model=argv[0] if argv else None)))
    except MercuryError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(asdict(found)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
