"""Draws what a terminal shows, for the pictures of `capture_neovim.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PIL import Image, ImageDraw, ImageFont
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

FONT_SIZE, LINE_HEIGHT = 14, 19
"""In pixels."""

FONTS = {False: "DejaVuSansMono.ttf", True: "DejaVuSansMono-Bold.ttf"}
"""By boldness."""

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Cursor:
    """Where it is, in cells, and whether it is a bar, as while inserting, or a block."""

    column: int
    row: int
    is_bar: bool


@cache
def font(is_bold: bool) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONTS[is_bold], FONT_SIZE)


def colours(style: Style, foreground: Colour, background: Colour) -> tuple[Colour, Colour]:
    """Those of the text and of what is behind it."""
    front = tuple(style.color.get_truecolor()) if style.color and not style.color.is_default else foreground
    back = tuple(style.bgcolor.get_truecolor()) if style.bgcolor and not style.bgcolor.is_default else background
    return (back, front) if style.reverse else (front, back)


def cells(line: Text) -> list[tuple[str, Style]]:
    """Every character of a line with its style; a wide one is followed by an empty one."""
    console, found = Console(width=1_000, color_system="truecolor"), []
    for index, character in enumerate(line.plain):
        style = line.get_style_at_offset(console, index)
        found += [(character, style), *[("", style)] * (cell_len(character) - 1)]
    return found


def draw(ansi: str, size: tuple[int, int], cursor: Cursor, foreground: Colour, background: Colour) -> Image.Image:
    """A screen of columns and rows, given with its colours as escape sequences."""
    width, (columns, rows) = font(False).getlength("m"), size
    image = Image.new("RGB", (round(columns * width), rows * LINE_HEIGHT), background)
    pen = ImageDraw.Draw(image)
    lines = [cells(Text.from_ansi(line)) for line in ansi.split("\n")[:rows]]
    for row, line in enumerate(lines):
        top, padded = row * LINE_HEIGHT, line + [(" ", Style())] * (columns - len(line))
        for column, (character, style) in enumerate(padded):
            left, right = round(column * width), round((column + 1) * width)
            front, back = colours(style, foreground, background)
            is_here = (column, row) == (cursor.column, cursor.row)
            if is_here and not cursor.is_bar:
                front, back = back, foreground
            pen.rectangle((left, top, right - 1, top + LINE_HEIGHT - 1), fill=back)
            pen.text((left, top + 1), character, font=font(bool(style.bold)), fill=front)
            if style.underline:
                pen.line((left, top + LINE_HEIGHT - 3, right - 1, top + LINE_HEIGHT - 3), fill=front)
            if is_here and cursor.is_bar:
                pen.rectangle((left, top, left + 1, top + LINE_HEIGHT - 1), fill=foreground)
    return image
