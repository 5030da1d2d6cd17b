"""`mercury-lsp watch FILE:LINE:COL`: shows decoding step by step, as drafts and accepted tokens or as a canvas."""

import argparse
import time
from collections.abc import Sequence

from mercury_engine.api import SlotView
from rich.console import Console
from rich.live import Live
from rich.text import Text

from mercury_lsp.commands.complete import Shown, context_of
from mercury_lsp.commands.terminal import add_model_argument, load, number, settings_for
from mercury_lsp.context.context import CompletionContext

_CONFIDENCE_COLOURS = ("red", "dark_orange", "yellow", "chartreuse3", "bright_green")
"""Colours of committed tokens, from confidence 0 to 1."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("position", metavar="FILE:LINE:COL", help="line and column count from 1")
    add_model_argument(parser, "what editors use, a remote engine too")
    parser.add_argument(
        "--delay", type=number(float, 0, 60), default=0.4, metavar="SECONDS", help="pause between steps (default: 0.4)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Fill the gap, then replay the steps and the shown text; without a terminal, print one line for each."""
    context, snapshot = context_of(arguments.position)
    console = Console(highlight=False)
    settings = settings_for(arguments.model)
    engine = load(settings)
    steps: list[tuple[SlotView, ...]] = []
    shown = Shown.of(engine, settings, context, snapshot, on_step=steps.append)
    fill = shown.fill
    if console.is_terminal:
        _play(console, context, steps, shown, arguments.delay)
    else:
        _list(console, steps, shown)
    if shown.reason is not None:
        console.print(Text(shown.complaint), soft_wrap=True)
    steps_taken = f"{fill.steps} step{'s' * (fill.steps != 1)}, {fill.elapsed * 1000:.1f} ms"
    confidence = f", confidence {fill.confidence:.2f}" if fill.text else ""  # no text has none
    console.print(f"{steps_taken}{confidence}, {engine.name} on {engine.device}", style="dim")
    return 0


def canvas(slots: Sequence[SlotView]) -> Text:
    """One step's canvas up to its end: masks as ░, drafts dim, committed tokens coloured by confidence."""
    text = Text()
    for slot in slots:
        if slot.state == "end":
            break
        if slot.state == "mask":
            text.append("░", "dim")
        elif slot.state == "draft":
            text.append(slot.text, "dim italic")
        else:
            grade = min(int(slot.confidence * len(_CONFIDENCE_COLOURS)), len(_CONFIDENCE_COLOURS) - 1)
            text.append(slot.text, _CONFIDENCE_COLOURS[grade])
    return text


def _play(
    console: Console, context: CompletionContext, steps: Sequence[Sequence[SlotView]], shown: Shown, delay: float
) -> None:
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for step, slots in enumerate(steps):
            title = Text(f"step {step} of {len(steps) - 1}\n", "dim")
            live.update(title + Text(context.line_prefix) + canvas(slots) + context.line_suffix, refresh=True)
            time.sleep(delay)
        line = Text(context.line_prefix) + Text(shown.text, "bright_green") + context.line_suffix
        live.update(Text("what an editor shows\n", "dim") + line, refresh=True)


def _list(console: Console, steps: Sequence[Sequence[SlotView]], shown: Shown) -> None:
    for step, slots in enumerate(steps):
        console.print(Text(f"{step:3} {_on_one_line(canvas(slots).plain)}"), soft_wrap=True)
    if shown.text:
        console.print(Text(f"an editor shows {_on_one_line(shown.text)}"), soft_wrap=True)


def _on_one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "⏎")
