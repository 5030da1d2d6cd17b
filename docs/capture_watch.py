"""Draw three of our examples filled step by step, animated without scripts.

    python docs/capture_watch.py [watch.svg|denoising.svg]

`watch.svg` is by the bundled model, `denoising.svg` by its masked diffusion twin, which comes with the repository.

Every frame is a picture of the same terminal, and CSS shows one frame after another.
"""

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mercury_engine.api import Control, SlotView
from rich.console import Console
from rich.text import Text

from mercury_lsp.commands.complete import Shown
from mercury_lsp.commands.try_ import SampleFile, examples
from mercury_lsp.commands.watch import canvas
from mercury_lsp.context import lookup_text
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from mercury_lsp.documents.languages import language_of
from mercury_lsp.engine_host.loading import filled, load_engine
from mercury_lsp.settings import Settings

HERE = Path(__file__).parent
PICTURES = {
    "watch.svg": (None, ("stack.go", "point.rs", "debounce.js")),
    "denoising.svg": ("mercury-135m-diffusion", ("debounce.js", "stack.go")),
}
"""By file: the model, and the examples."""

COLUMNS = 64
ROWS = 17
LINES_ABOVE = 2
SLOTS_SHOWN = 12
"""The row of masks is longer than the terminal is wide."""

FRAME_SECONDS = 0.9
LAST_FRAME_SECONDS = 4.0

STYLE = """
    .frame {{ visibility: hidden; animation: frame {seconds}s step-end infinite }}
    .last {{ animation-name: last }}
    @keyframes frame {{ 0% {{ visibility: visible }} {frame}%, 100% {{ visibility: hidden }} }}
    @keyframes last {{ 0% {{ visibility: visible }} {last}%, 100% {{ visibility: hidden }} }}
    @media (prefers-reduced-motion: reduce) {{
      .frame {{ animation: none }}
      .last {{ visibility: visible }}
    }}
"""


def main(names: Sequence[str]) -> None:
    """Draw the pictures of these names, or all."""
    for name in names or PICTURES:
        model, files = PICTURES[name]
        (HERE / name).write_text(drawn(Settings(model=model), files))


def drawn(settings: Settings, files: Sequence[str]) -> str:
    """The examples filled, with a frame for every step."""
    engine = load_engine(settings)
    above: list[Text] = []
    frames: list[Text] = []
    samples = {each.path.name: each for each in examples(HERE.parent / "examples")}
    for name in files:
        example = samples[name]
        document = Document(f"file:///{name}", language_of(name), 1, example.before + example.after)
        snapshot = document.snapshot()
        context = ContextBuilder().build(snapshot, len(example.before), name)
        context = lookup_text.with_rest_of_document(context, snapshot)
        steps: list[tuple[SlotView, ...]] = []
        if settings.model is None:
            shown = Shown.of(engine, settings, context, snapshot, on_step=steps.append)
            fill, text = shown.fill, shown.text
        else:  # all of a fill, also where an editor shows nothing
            fill = filled(engine, context.request(), Control(on_step=steps.append))
            text = fill.text
        states = [canvas(slots[:SLOTS_SHOWN]) for slots in steps]
        for number, state in enumerate(states):
            caption = f"step {number} of {fill.steps}" if number else "the gap"
            frames.append(Text("\n\n").join([*above, _block(name, example, state, caption)]))
        caption = f"{fill.steps} steps, confidence {fill.confidence:.2f}, {engine.name}"
        above.append(_block(name, example, Text(text, "bright_green"), caption))
    return _animation([*frames, Text("\n\n").join(above)])


def _block(name: str, example: SampleFile, state: Text, caption: str) -> Text:
    *before, line_prefix = example.before.split("\n")[-1 - LINES_ABOVE :]
    line_suffix = example.after.split("\n")[0]
    code = ("".join(line + "\n" for line in before), "dim")
    return Text.assemble((name + "\n", "bold"), code, line_prefix, state, line_suffix, ("\n" + caption, "cyan"))


def _animation(frames: Sequence[Text]) -> str:
    """The first frame's picture with the text of all frames in it."""
    pictures = [_picture(frame, f"f{number}") for number, frame in enumerate(frames)]
    groups = []
    for number, picture in enumerate(pictures):
        text = re.sub(r' clip-path="[^"]*"', "", picture[picture.index('<g class="f') : picture.rindex("</g>")])
        last = " last" if number == len(frames) - 1 else ""
        delay = f"animation-delay: {number * FRAME_SECONDS:.1f}s"
        groups.append(f'<g class="frame{last}" style="{delay}">{text}</g>')
    styles = [style for picture in pictures[1:] for style in re.findall(r"\.f\d+-\w+ \{[^}]*\}", picture)]
    seconds = (len(frames) - 1) * FRAME_SECONDS + LAST_FRAME_SECONDS
    frame, last_frame = (f"{100 * each / seconds:.2f}" for each in (FRAME_SECONDS, LAST_FRAME_SECONDS))
    style = STYLE.format(seconds=seconds, frame=frame, last=last_frame)
    first = pictures[0]
    head = first[: first.index('<g class="f')].replace("</style>", "\n".join(styles) + style + "</style>")
    return head + "\n".join(groups) + "\n    </g>\n</svg>\n"


def _picture(frame: Text, identity: str) -> str:
    console = Console(record=True, width=COLUMNS, height=ROWS, highlight=False, file=io.StringIO())
    console.print(frame + "\n" * (ROWS - 1 - frame.plain.count("\n")))
    return console.export_svg(title="mercury-lsp watch", unique_id=identity)


if __name__ == "__main__":
    main(sys.argv[1:])
