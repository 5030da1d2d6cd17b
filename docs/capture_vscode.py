"""Film grey text and a renaming in a real VS Code, both accepted by Tab.

    MERCURY_VSCODE=... python docs/capture_vscode.py [SERVER COMMAND...]

Writes `vscode.gif` beside this file. Without a command the server
is this Python's `mercury_lsp`, with the model of the settings. Needs what the tests of the extension need
(editors/vscode/README.md), and Pillow.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import CTRL  # noqa: E402
from tests.support.vscode import PANE, Window, Workbench, missing  # noqa: E402

FRAME_MS, LAST_FRAME_MS = 1_200, 3_000
SETTLED_S = 0.7
"""The workbench has drawn by then what the extension has sent."""

COLOURS = 128
WIDTH, LINE_HEIGHT = 830, 19

SETTINGS = {
    "breadcrumbs.enabled": False,
    "editor.autoClosingBrackets": "never",
    "editor.autoClosingQuotes": "never",
    "editor.bracketPairColorization.enabled": False,
    "editor.cursorBlinking": "solid",
    "editor.lightbulb.enabled": "off",
    "editor.matchBrackets": "never",
    "editor.minimap.enabled": False,
    "editor.occurrencesHighlight": "off",
    "editor.wordBasedSuggestions": "off",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
}

TEXT = """\
RATES = {"DE": 4.5, "FR": 6.0, "US": 9.5}


def shipping(weight, country):
    if weight <= 0:
        raise ValueError(f"impossible weight: {weight}")
    rate = RATES[country]
    if weight > 30:
        rate = rate * 1.5
    return round(rate * weight, 2)
"""

TYPED = ("if country n", 'raise ValueError(f"un')
"""Typed on two new lines below line 4, which VS Code indents. The model writes the rest of both."""

LINES = TEXT.count("\n") + len(TYPED)


def frames(window: Window, folder: Path) -> Iterator[Image.Image]:
    """One frame before the first change, and one after every step."""
    page = window.page
    go(window, 3)
    yield shoot(window, folder)
    for text in TYPED:
        page.press("End")
        page.press("Enter")
        page.type(text)
        window.waits(window.ghost)
        yield shoot(window, folder)
        page.press("Tab")
        yield shoot(window, folder)
    go(window, 3, 13)
    page.press("d", CTRL)
    page.type("kilograms")
    while "weight," in window.file.read_text():
        hints = window.waits(lambda: window.drawn().hints)
        yield shoot(window, folder)
        page.press("Tab")
        window.waits(lambda hints=hints: window.drawn().hints != hints)
        time.sleep(SETTLED_S)  # for the file to be saved
    yield shoot(window, folder)


def go(window: Window, line: int, column: int = 0) -> None:
    """Put the cursor there by keys."""
    window.page.press("Home", CTRL)
    for _ in range(line):
        window.page.press("ArrowDown")
    for _ in range(column):
        window.page.press("ArrowRight")


def shoot(window: Window, folder: Path) -> Image.Image:
    """The lines of the file as they are shown."""
    time.sleep(SETTLED_S)
    window.page.screenshot(folder / "frame.png")
    left, top = window.page.evaluate(
        "(({left, top}) => [left, top])(document.querySelector('.editor-instance').getBoundingClientRect())"
    )
    with Image.open(folder / "frame.png") as image:
        return image.convert("RGB").crop((int(left), int(top), int(left) + WIDTH, int(top) + LINE_HEIGHT * LINES))


def save(images: Sequence[Image.Image]) -> Path:
    """Write the frames with one palette, beside this file."""
    path = Path(__file__).with_name("vscode.gif")
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
        file = folder / "shop" / "shop.py"
        file.parent.mkdir()
        file.write_text(TEXT)
        workbench = Workbench(folder)
        workbench.configure(SETTINGS | {"mercury.command": command})
        try:
            window = workbench.open(file).is_ready()
            window.page.press("b", CTRL)
            window.page.click(PANE)
            images = list(frames(window, folder))
        finally:
            workbench.close()
    path = save(images)
    sys.stdout.write(f"{path.name}: {len(images)} frames, {path.stat().st_size / 1000:.0f} KB\n")


if __name__ == "__main__":
    main()
