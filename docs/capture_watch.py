"""Draw docs/watch.svg: the denoising of two examples, step by step, as `mercury-lsp watch` shows it."""

import io
from dataclasses import replace
from pathlib import Path

from mercury_engine.api import SlotView
from rich.console import Console
from rich.text import Text

from mercury_lsp.commands.try_ import read_example
from mercury_lsp.commands.watch import canvas
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from mercury_lsp.documents.languages import language_of
from mercury_lsp.engine_host.worker import load_engine
from mercury_lsp.settings import Settings

HERE = Path(__file__).parent
EXAMPLES = ("moving_average.py", "point.rs", "debounce.js")


def main() -> None:
    """Fill the examples and draw every step of it."""
    engine = load_engine(Settings())
    console = Console(record=True, width=96, highlight=False, file=io.StringIO())
    for name in EXAMPLES:
        example = read_example(HERE.parent / "examples" / name)
        assert example is not None
        document = Document(f"file:///{name}", language_of(name), 1, example.before + example.after)
        context = ContextBuilder().build(document.snapshot(), len(example.before), name)
        steps: list[tuple[SlotView, ...]] = []
        fill = engine.fill(replace(context.request(), give_up_below=engine.gate, on_step=steps.append))
        console.print(Text(name, "bold"))
        for number, slots in enumerate(steps, 1):
            line = Text(f"{number:3} ", "dim") + Text(context.line_prefix) + canvas(slots)
            console.print(line + Text(context.line_suffix), soft_wrap=True)
        figures = f"{fill.steps} steps, confidence {fill.confidence:.2f}"
        console.print(Text(figures + "\n", "cyan"))
    console.save_svg(str(HERE / "watch.svg"), title="mercury-lsp watch")


if __name__ == "__main__":
    main()
