"""`mercury-lsp complete FILE:LINE:COL`: prints one completion."""

import argparse
import json
import sys
from dataclasses import replace

from mercury_engine.api import Fill

from mercury_lsp import default_model
from mercury_lsp.commands.file_position import FilePosition
from mercury_lsp.commands.loading import load
from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("position", metavar="FILE:LINE:COL", help="line and column count from 1")
    parser.add_argument("--json", action="store_true", help="print an object with text, confidence, steps ...")
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="a folder, GGUF file, model name or bundled (default: the one that editors use)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the suggestion at the position, even if an editor would not show it."""
    context, snapshot = FilePosition.parse(arguments.position).context()
    settings = Settings(model=default_model.named(arguments.model))
    engine = load(settings)
    fill = engine.fill(replace(context.request(), effort=settings.effort, max_slots=settings.max_slots))
    text = postprocess(fill.text, context, snapshot)
    worth = engine.worth.of(fill.confidence, text, fill.is_finished)
    answer = {
        "text": text,
        "confidence": round(fill.confidence, 4),
        "shown": bool(text) and worth >= engine.worth.least,
        "steps": fill.steps,
        "elapsed_ms": round(fill.elapsed * 1000, 3),
        "device": engine.device,
        "model": engine.name,
    }
    if not arguments.json and not answer["shown"]:
        sys.stderr.write(f"an editor would not show this unasked: {_reason(fill, text, worth, engine.worth.least)}\n")
    sys.stdout.write((json.dumps(answer, ensure_ascii=False) if arguments.json else text) + "\n")
    return 0


def _reason(fill: Fill, text: str, worth: float, least: float) -> str:
    """Why a suggestion is not shown; `text` is what is left of the fill, worth so many characters."""
    if text:
        return f"it is worth {worth:.1f} characters, the least is {least:.1f} (confidence {fill.confidence:.2f})"
    if fill.text:
        return f"the code around the cursor already says {fill.text!r}"
    return "the model ends the gap at once"
