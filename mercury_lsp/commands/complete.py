"""`mercury-lsp complete FILE:LINE:COL`: prints one completion."""

import argparse
import json
import sys
from dataclasses import replace

from mercury_lsp import default_model
from mercury_lsp.commands.file_position import FilePosition
from mercury_lsp.commands.loading import load
from mercury_lsp.commands.shown import Shown
from mercury_lsp.engine_host.blocking import filled
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
    request = replace(context.request(), effort=settings.effort, max_slots=settings.max_slots)
    fill = filled(engine, request)
    shown = Shown.of(fill, engine, settings, context, snapshot)
    answer = {
        "text": shown.text,
        "confidence": round(fill.confidence, 4),
        "shown": shown.reason is None,
        "steps": fill.steps,
        "elapsed_ms": round(fill.elapsed * 1000, 3),
        "device": engine.device,
        "model": engine.name,
    }
    if not arguments.json:
        sys.stderr.write(shown.complaint())
    sys.stdout.write((json.dumps(answer, ensure_ascii=False) if arguments.json else shown.text) + "\n")
    return 0
