"""Film a renaming in a real VS Code, walked to the end by Tab.

    MERCURY_VSCODE=... python docs/capture_vscode.py [SERVER COMMAND...]

Writes `vscode-rename.gif` beside this file. Without a command the server
is this Python's `mercury_lsp`, with the model of the settings. Needs what the tests of the extension need
(editors/vscode/README.md), and Pillow.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import CTRL  # noqa: E402
from tests.support.vscode import PANE, Window, Workbench, missing  # noqa: E402

FRAME_MS, LAST_FRAME_MS = 1_400, 3_000
SETTLED_S = 0.7
"""The workbench has drawn by then what the extension has sent."""

COLOURS = 128
WIDTH, LINE_HEIGHT = 780, 19

SETTINGS = {
    "breadcrumbs.enabled": False,
    "editor.bracketPairColorization.enabled": False,
    "editor.cursorBlinking": "solid",
    "editor.lightbulb.enabled": "off",
    "editor.matchBrackets": "never",
    "editor.minimap.enabled": False,
    "editor.occurrencesHighlight": "off",
    "editor.wordBasedSuggestions": "off",
    "editor.inlineSuggest.enabled": False,
    "workbench.colorTheme": "Default Dark Modern",
}

RENAMING = """\
def shipping(weight, country):
    if weight <= 0:
        raise ValueError(f"impossible: {weight}")
    rate = RATES.get(country, 12.0)
    if weight > 30:
        rate = rate * 1.5
    return round(rate * weight, 2)


def label(country):
    return country.upper()
"""


@dataclass(frozen=True)
class Film:
    """What is filmed: a file, what is changed by hand, and how the file must read at the end."""

    name: str
    text: str
    by_hand: Sequence[Callable[[Window], None]]
    end: str


def rename(window: Window) -> None:
    go(window, 0, 13)
    window.page.press("d", CTRL)
    window.page.type("kilograms")


FILMS = (Film("vscode-rename", RENAMING, (rename,), RENAMING.replace("weight", "kilograms")),)


def go(window: Window, line: int, column: int) -> None:
    """Put the cursor there by keys."""
    window.page.press("Home", CTRL)
    for _ in range(line):
        window.page.press("ArrowDown")
    for _ in range(column):
        window.page.press("ArrowRight")


def shoot(window: Window, film: Film, folder: Path) -> Image.Image:
    """The lines of the file as they are shown."""
    time.sleep(SETTLED_S)
    window.page.screenshot(folder / "frame.png")
    left, top = window.page.evaluate(
        "(({left, top}) => [left, top])(document.querySelector('.editor-instance').getBoundingClientRect())"
    )
    height = LINE_HEIGHT * max(text.count("\n") for text in (film.text, film.end))
    with Image.open(folder / "frame.png") as image:
        return image.convert("RGB").crop((int(left), int(top), int(left) + WIDTH, int(top) + height))


@contextmanager
def opened(workbench: Workbench, film: Film, folder: Path, command: Sequence[str]) -> Iterator[Window]:
    file = folder / film.name / "shop.py"
    file.parent.mkdir()
    file.write_text(film.text)
    workbench.configure(SETTINGS | {"mercury.command": command})
    window = workbench.open(file)
    try:
        window.is_ready()
        window.page.press("b", CTRL)
        window.page.click(PANE)
        yield window
    finally:
        window.close()


def frames(window: Window, film: Film, folder: Path) -> Iterator[Image.Image]:
    """One frame before the change, and one after every step that is drawn."""
    go(window, 0, 0)
    yield shoot(window, film, folder)
    *first, last = film.by_hand
    for change in first:
        change(window)
        yield shoot(window, film, folder)
    last(window)
    while window.file.read_text() != film.end:
        hints = window.waits(lambda: window.drawn().hints)
        yield shoot(window, film, folder)
        window.page.press("Tab")
        window.waits(lambda hints=hints: window.drawn().hints != hints)
        time.sleep(SETTLED_S)  # for the file to be saved
    yield shoot(window, film, folder)


def save(name: str, images: Sequence[Image.Image]) -> Path:
    """Write the frames with one palette, beside this file."""
    path = Path(__file__).with_name(f"{name}.gif")
    sheet = Image.new("RGB", (images[0].width, images[0].height * len(images)))
    for number, image in enumerate(images):
        sheet.paste(image, (0, number * image.height))
    palette = sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    first, *others = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in images)
    durations = [FRAME_MS] * len(others) + [LAST_FRAME_MS]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    return path


def main() -> None:
    if (what := missing()) is not None:
        sys.exit(what)
    command = sys.argv[1:] or [sys.executable, "-m", "mercury_lsp", "--in-process"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workbench = Workbench(folder)
        try:
            for film in FILMS:
                with opened(workbench, film, folder, command) as window:
                    images = list(frames(window, film, folder))
                path = save(film.name, images)
                sys.stdout.write(f"{path.name}: {len(images)} frames, {path.stat().st_size / 1000:.0f} KB\n")
        finally:
            workbench.close()


if __name__ == "__main__":
    main()
