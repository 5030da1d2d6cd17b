"""`mercury-lsp complete FILE:LINE:COL`: prints the text that an editor shows there."""

import argparse
import sys

from mercury_lsp.commands.file_position import context_of
from mercury_lsp.commands.loading import add_model_argument, load, settings_for
from mercury_lsp.commands.shown import Shown
from mercury_lsp.commands.terminal import note, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("position", metavar="FILE:LINE:COL", help="line and column count from 1")
    parser.add_argument("--json", action="store_true", help="print an object with text, reason, confidence, steps ...")
    add_model_argument(parser, "what editors use, a remote engine too")


def run(arguments: argparse.Namespace) -> int:
    """Print the text that an editor shows automatically at the position, or why it shows none."""
    context, snapshot = context_of(arguments.position)
    settings = settings_for(arguments.model)
    engine = load(settings)
    shown = Shown.of(engine, settings, context, snapshot)
    if arguments.json:
        print_json(
            {
                "text": shown.text,
                "reason": shown.reason,
                "confidence": round(shown.fill.confidence, 4),
                "steps": shown.fill.steps,
                "elapsed_ms": round(shown.fill.elapsed * 1000, 3),
                "device": engine.device,
                "model": engine.name,
            }
        )
    elif shown.reason is None:
        sys.stdout.write(f"{shown.text}\n")
    else:
        note(shown.complaint)
    return 0
