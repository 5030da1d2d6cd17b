"""Source texts to edit, the kinds of edit, and the edits that seeds give."""

import random

from mercury_lab.training.adapters.examples import MAX_EDIT_TOKENS, REGION_LINES
from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.edits import (
    asynchronous,
    extract,
    imports,
    keys,
    members,
    parameters,
    rename,
    retype,
    wrap,
)
from mercury_lab.training.edits.plan import EditPlan, applied
from mercury_lab.training.edits.source import Source
from mercury_lab.training.examples.edits import EditSampler
from mercury_lab.training.examples.gaps import GapSettings

SHOP = '''"""A shop."""

import json
from dataclasses import dataclass
from pathlib import Path

from tools import round_price


@dataclass
class Item:
    title: str
    price: int
    stock: int = 0


class Shop:
    """Sells items."""

    def __init__(self, folder: Path, currency: str) -> None:
        self.folder = folder
        self.currency = currency
        self.items: list[Item] = []

    def load(self, name: str) -> list[Item]:
        """Read a list of items."""
        rows = read_rows(self.folder / name)
        for row in rows:
            self.items.append(Item(title=row["title"], price=row["price"], stock=3))
        return self.items

    def total(self) -> int:
        found = sum(item.price for item in self.items)
        if not self.items:
            return 0
        print("nothing to sell", self.items)
        return found


def read_rows(path: Path) -> list[dict]:
    """Read rows; read_rows does not check them."""
    return json.loads(path.read_text())


def show(path: Path, width: int) -> str:
    rows = read_rows(path)
    sizes = {"title": width, "price": 8}
    lines = [f"{row['title']:{width}}" for row in rows]
    if not lines:
        print("nothing to sell")
    return "\\n".join(lines)[: sizes["price"]]


def show_all(paths: list[Path]) -> list[str]:
    first = Item(title="first", price=1)
    print(first, round_price(first.price))
    rows = [show(path, 20) for path in paths]
    return [*rows, show(paths[0], 40)]
'''

KINDS = {
    "rename": rename,
    "parameters": parameters,
    "retype": retype,
    "wrap": wrap,
    "extract": extract,
    "imports": imports,
    "asynchronous": asynchronous,
    "members": members,
    "keys": keys,
}

SCRIPT = """import { open } from "./files";

class Reader {
  constructor(folder, mode) {
    this.folder = folder;
    this.mode = mode;
  }

  read(name) {
    return parse(this.folder + name, this.mode);
  }
}

function parse(path, mode) {
  const text = open(path);
  const width = text.length;
  return text.split(mode, width);
}

function parseAll(paths) {
  return paths.map((path) => parse(path, ","));
}
"""


def plans(kind, text: str, language: str = "python", seeds: int = 120) -> list[EditPlan]:
    """All plans that some seeds draw."""
    read = Source(f"shop/main.{language}", language, text)
    sampled = (kind.sample_plan(read, random.Random(seed)) for seed in range(seeds))
    return [made for made in sampled if made]


def outcomes(kind, text: str, language: str = "python") -> dict[str, str]:
    """What the plans make of the text, and the kinds of edit that lead there or back."""
    found = {}
    for made in plans(kind, text, language):
        other = made.text if made.text != text else applied(made.text, made.sites)
        found[other] = made.kind
    return found


def shop(text: str = SHOP, path: str = "shop/main.py", language: str = "python") -> SourceFile:
    return SourceFile(path, "shop", language, text)


def sampler(tokenizer, seed: int, spans: GapSettings | None = None) -> EditSampler:
    """A sampler of regions of the size that the edit adapter learns from."""
    return EditSampler(tokenizer, random.Random(seed), spans or GapSettings(), REGION_LINES, MAX_EDIT_TOKENS - 1)


def sampled(tokenizer, seeds: int = 40, file: SourceFile | None = None):
    return [e for seed in range(seeds) for e in sampler(tokenizer, seed).examples(file or shop(), 8)]
