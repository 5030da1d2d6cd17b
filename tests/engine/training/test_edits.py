"""Edits to learn from: each kind does what it says, in part; the layout shows the rest."""

import ast
import builtins
import logging
import random
import re
import sys
from dataclasses import replace

import pytest
from mercury_engine.prompt.edit_layout import (
    HISTORY_CHARS,
    LINE_CHARS,
    EditHunk,
    edit_blocks,
    history_block,
    region_block,
)
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.training.data.corpus import SourceFile
from mercury_engine.training.edits import (
    EditSampler,
    asynchronous,
    extract,
    from_versions,
    imports,
    keys,
    members,
    parameters,
    python_facts,
    rename,
    retype,
    source,
    tree_facts,
    wrap,
)
from mercury_engine.training.edits.plan import EditPlan, Site, applied, flipped, plan
from mercury_engine.training.edits.source import Source
from mercury_engine.training.edits.stage import Stage, steps
from mercury_engine.training.examples.gaps import GapSettings

from tests.support import tiny

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
    drawn = (kind.sample_plan(read, random.Random(seed)) for seed in range(seeds))
    return [made for made in drawn if made]


def outcomes(kind, text: str, language: str = "python") -> dict[str, str]:
    """What the plans make of the text, and the kinds of edit that lead there or back."""
    found = {}
    for made in plans(kind, text, language):
        other = made.text if made.text != text else applied(made.text, made.sites)
        found[other] = made.kind
    return found


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codec")
    tiny.tokenizer(900).save(str(folder / "tokenizer.json"))
    return Tokenizer(folder)


def shop(text: str = SHOP, path: str = "shop/main.py", language: str = "python") -> SourceFile:
    return SourceFile(path, "shop", language, text)


def drawn(tokenizer, seeds: int = 40, file: SourceFile | None = None):
    return [e for seed in range(seeds) for e in EditSampler(tokenizer, random.Random(seed)).examples(file or shop(), 8)]


@pytest.fixture(scope="module")
def examples(tokenizer):
    return drawn(tokenizer)


# Kinds


def test_a_function_is_renamed_in_all_places():
    found = [made for made in plans(rename, SHOP) if SHOP[made.sites[0].start :].startswith("read_rows")]
    assert found
    for made in found:
        new = made.sites[0].text
        assert applied(SHOP, made.sites) == re.sub(r"\bread_rows\b(?! does)", new, SHOP)
        assert not re.search(rf"\b{new}\b", SHOP)


def test_comments_take_part_in_a_rename_when_the_name_is_no_english_word():
    text = "# load_all or total\ndef {0}(a):\n    return a\n\n\nx = {0}(1)\n"
    for name, takes_part in (("load_all", True), ("total", False)):
        found = [made for made in plans(rename, text.format(name)) if len({s.text for s in made.sites}) == 1]
        found = [made for made in found if text.format(name)[made.sites[0].start :].startswith(name)]
        assert found
        assert {made.text.index(name) in {site.start for site in made.sites} for made in found} == {takes_part}


def test_a_local_name_is_renamed_inside_its_function_and_not_as_the_name_of_an_argument():
    text = "def f(width):\n    return g(width=width, b=width)\n\n\ndef h(width):\n    return o.width + width\n"
    afters = {applied(text, made.sites) for made in plans(rename, text)}
    new = "size"
    wanted = text.replace("def f(width)", f"def f({new})").replace("=width", f"={new}")
    shapes = {after.replace(word, new) for after in afters for word in _names(after) - _names(text)}
    assert wanted in shapes
    assert text.replace("def h(width)", f"def h({new})").replace("+ width", f"+ {new}") in shapes


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} | {
        node.arg for node in ast.walk(ast.parse(text)) if isinstance(node, ast.arg)
    }


def test_a_parameter_comes_goes_and_changes_places_with_its_calls():
    found = outcomes(parameters, SHOP)
    swapped = SHOP.replace("show(path: Path, width: int)", "show(width: int, path: Path)")
    swapped = swapped.replace("show(path, 20)", "show(20, path)").replace("show(paths[0], 40)", "show(40, paths[0])")
    assert found[swapped] == "reorder_parameters"
    missing = SHOP.replace("show(path: Path, width: int)", "show(path: Path)")
    missing = missing.replace("show(path, 20)", "show(path)").replace("show(paths[0], 40)", "show(paths[0])")
    assert found[missing] == "add_parameter"
    more = [text for text, kind in found.items() if len(text) > len(SHOP)]
    assert {found[text] for text in more} == {"add_parameter", "remove_parameter"}
    for text in more:
        functions = {f.name: f for f in ast.walk(ast.parse(text)) if isinstance(f, ast.FunctionDef)}
        longer = [name for name in ("show", "read_rows") if len(functions[name].args.args) > {"show": 2}.get(name, 1)]
        calls = [c for c in ast.walk(ast.parse(text)) if isinstance(c, ast.Call) and _name(c) in longer]
        assert len(longer) == 1
        assert len({len(c.args) + len(c.keywords) for c in calls}) == 1
        assert len(calls[0].args) + len(calls[0].keywords) == len(functions[longer[0]].args.args)


def test_callers_of_a_method_do_not_write_self():
    text = "class A:\n    def m(self, a, b):\n        return self.m(1, 2)\n"
    swapped = "class A:\n    def m(self, b, a):\n        return self.m(2, 1)\n"
    assert outcomes(parameters, text).get(swapped) == "reorder_parameters"


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def test_a_type_changes_wherever_the_name_is_declared_with_it():
    found = outcomes(retype, SHOP)
    assert SHOP.replace("path: Path", "path: Path | None") in found
    assert set(found.values()) == {"change_type"}


def test_calls_whose_value_is_used_are_wrapped():
    found = outcomes(wrap, SHOP)
    wrapped = SHOP.replace("show(path, 20)", "list(show(path, 20))").replace(
        "show(paths[0], 40)", "list(show(paths[0], 40))"
    )
    assert wrapped in found
    assert not any("list(print" in text for text in found)


def test_a_repeated_literal_becomes_a_constant_and_a_repeated_attribute_a_variable():
    found = outcomes(extract, SHOP)
    constant = SHOP.replace('"nothing to sell"', "NOTHING_TO_SELL")
    head = "@dataclass\nclass Item"
    assert constant.replace(head, f'NOTHING_TO_SELL = "nothing to sell"\n\n{head}') in found
    start, end = SHOP.index("    def total"), SHOP.index("def read_rows")
    renamed = [text for text in found if " = self.items\n" in text]
    assert renamed
    for text in renamed:
        name = text[start:].split(" = self.items\n")[0].split()[-1]
        body = (
            SHOP[start:end]
            .replace("self.items", name)
            .replace("        found", f"        {name} = self.items\n        found")
        )
        assert text == SHOP[:start] + body + SHOP[end:]


def test_the_import_comes_last_and_behind_the_first_use():
    found = [made for made in plans(imports, SHOP) if "import round_price" in made.sites[-1].text]
    assert found
    for made in found:
        assert applied(made.text, made.sites) == SHOP
        assert "round_price" not in made.text
        assert "round_price(" in made.sites[0].text


def test_a_function_becomes_asynchronous_with_its_calls_and_the_functions_around_them():
    found = outcomes(asynchronous, SHOP)
    after = SHOP.replace("def read_rows", "async def read_rows").replace("= read_rows(", "= await read_rows(")
    after = after.replace("    def load", "    async def load").replace("def show(", "async def show(")
    assert after in found
    text = "async def a():\n    return 1\n\n\nasync def b():\n    c = await a()\n    return (await a()).d\n"
    assert text.replace("async def a", "def a").replace("await ", "") in outcomes(asynchronous, text)


def test_a_field_is_added_to_class_constructor_and_callers():
    found = outcomes(members, SHOP)
    price = SHOP.replace("    price: int\n", "").replace('price=row["price"], ', "").replace(", price=1", "")
    assert price in found
    currency = SHOP.replace(", currency: str", "").replace("        self.currency = currency\n", "")
    assert currency in found


def test_a_key_is_renamed_in_literals_and_look_ups_and_nowhere_else():
    text = 'A = {"width": 1, "name": "width"}\nB = [{"width": 2}, A["width"], A.get("width"), "width"]\n'
    for made in plans(keys, text):
        new = made.sites[0].text
        after = applied(text, made.sites)
        assert (
            after == f'A = {{"{new}": 1, "name": "width"}}\nB = [{{"{new}": 2}}, A["{new}"], A.get("{new}"), "width"]\n'
        )
    assert plans(keys, text)
    assert plans(keys, "a:\n  size: 1\nb:\n  size: 2\n", "yaml")


FIELDS = {
    "go": ("type T struct {\n\tA int\n\tB int\n}\n\nvar t = T{A: 1, B: 2}\n", ("\tB int\n", ", B: 2")),
    "rust": (
        "struct T {\n    a: u32,\n    b: u32,\n}\n\nfn f(b: u32) -> T {\n    T { a: 1, b }\n}\n",
        ("    b: u32,\n", ", b }"),
    ),
    "javascript": (SCRIPT, (", mode) {\n    this", "    this.mode = mode;\n")),
    "java": (
        "class T {\n    private int a;\n    private int b;\n\n    T(int a, int b) {\n        this.a = a;\n"
        "        this.b = b;\n    }\n}\n",
        ("    private int b;\n", ", int b", "        this.b = b;\n"),
    ),
}


@pytest.mark.parametrize("language", FIELDS)
def test_fields_are_found_in_other_languages(language):
    text, gone = FIELDS[language]
    for part in gone:
        kept = {", b }": " }", ", mode) {\n    this": ") {\n    this"}.get(part, "")
        text = text.replace(part, kept, 1)
    assert text in outcomes(members, FIELDS[language][0], language)


CALLS = {
    "javascript": ("function f(a, b) {}\nconst c = f(1, 2);\n", "function f(b, a) {}\nconst c = f(2, 1);\n"),
    "typescript": (
        "function f(a: string, b: number) {}\nconst c = f(x, y);\n",
        "function f(b: number, a: string) {}\nconst c = f(y, x);\n",
    ),
    "go": (
        "package p\n\nfunc f(a int, b string) {}\n\nfunc g() { f(1, x) }\n",
        "package p\n\nfunc f(b string, a int) {}\n\nfunc g() { f(x, 1) }\n",
    ),
    "rust": ("fn f(a: u8, b: u8) {}\nfn g() { f(x, y); }\n", "fn f(b: u8, a: u8) {}\nfn g() { f(y, x); }\n"),
    "java": (
        "class A {\n    int f(int a, T b) { return 1; }\n    int g() { return f(1, x); }\n}\n",
        "class A {\n    int f(T b, int a) { return 1; }\n    int g() { return f(x, 1); }\n}\n",
    ),
    "c": (
        "int f(int a, T *b) { return 1; }\nint x = f(1, y);\n",
        "int f(T *b, int a) { return 1; }\nint x = f(y, 1);\n",
    ),
    "cpp": (
        "int f(int a, T& b) { return 1; }\nint x = f(1, y);\n",
        "int f(T& b, int a) { return 1; }\nint x = f(y, 1);\n",
    ),
    "lua": ("local function f(a, b) end\nf(1, 2)\n", "local function f(b, a) end\nf(2, 1)\n"),
}


@pytest.mark.parametrize("language", CALLS)
def test_parameters_change_places_in_other_languages(language):
    text, after = CALLS[language]
    assert outcomes(parameters, text, language).get(after) == "reorder_parameters"


def test_other_languages_have_the_other_kinds_too():
    script = SCRIPT.replace("folder, mode", "folder: string, mode: string").replace(
        "path, mode)", "path, mode: string)"
    )
    assert outcomes(retype, script, "typescript")
    assert SCRIPT.replace("= open(", "= await open(").count("await") == 1
    made = outcomes(
        asynchronous, SCRIPT.replace("(path) => parse", "function all(path) { return parse(path) }"), "javascript"
    )
    assert any("async function parse" in text for text in made)
    opened = [made for made in plans(imports, SCRIPT, "javascript") if made.sites[-1].text.startswith("import")]
    assert opened
    assert applied(opened[0].text, opened[0].sites) == SCRIPT


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_back_leads_back(kind):
    found = plans(KINDS[kind], SHOP)
    assert found
    for made in found:
        back = flipped(made)
        assert applied(back.text, back.sites) == made.text
        assert flipped(back).text == made.text


def test_removals_that_touch_are_no_plan():
    assert plan("x", "ab\ncd\n", [Site(0, 3, ""), Site(3, 6, "")]) is None
    assert plan("x", "ab\ncd\n", [Site(0, 4, ""), Site(3, 6, "x")]) is None
    assert plan("x", "ab\ncd\n", [Site(0, 2, "ab")]) is None


def test_names_in_text_beyond_ascii_are_found_where_they_stand():
    text = '# größe\ndef zähle(größe):\n    return größe + f("ü", größe)\n\n\nx = zähle(1) + zähle("é")\n'
    for made in (*plans(rename, text), *plans(parameters, text), *plans(wrap, text)):
        assert ast.parse(applied(made.text, made.sites))
        assert ast.parse(made.text)
    script = 'const ü = "é";\nfunction f(a, b) { return ü; }\nconst c = f(ü, 2);\n'
    assert 'const ü = "é";\nfunction f(b, a) { return ü; }\nconst c = f(2, ü);\n' in outcomes(
        parameters, script, "javascript"
    )


# Examples


def test_every_kind_is_drawn_and_every_edit_changes_its_region(examples):
    kinds = {example.kind for example in examples if not example.is_quiet}
    assert kinds >= {"rename", "add_parameter", "change_type", "wrap", "extract", "import", "async", "field", "key"}
    for example in examples:
        assert example.region_text
        assert example.region[0] == 0 or example.current[example.region[0] - 1] == "\n"
        assert example.region_text.endswith("\n") or example.region[1] == len(example.current)


def test_the_history_leads_from_before_to_the_current_text(examples):
    for example in examples:
        text = example.before
        for change in example.history:
            if change.path is None:
                assert text.startswith(change.removed, change.start)
                text = text[: change.start] + change.inserted + text[change.start + len(change.removed) :]
        assert text == example.current
        assert example.history


def test_a_rewritten_region_leaves_text_that_parses(examples):
    for example in examples:
        current, (start, end) = example.current, example.region
        assert ast.parse(example.before)
        assert ast.parse(current[:start] + example.rewritten + current[end:])
        assert ast.parse(example.after)


def test_all_edits_together_lead_to_the_text_after(examples):
    """The region's new lines are those of the finished text."""
    for example in examples:
        assert example.is_quiet or example.rewritten in example.after


def test_a_quarter_has_no_edit(tokenizer):
    found = drawn(tokenizer, 100)
    quiet = sum(example.is_quiet for example in found)
    assert len(found) > 700
    assert 0.2 < quiet / len(found) < 0.3


def test_the_target_is_not_in_the_history(examples):
    """No change of the history lies on lines that the target changes, as they are in the current text."""
    for example in examples:
        if example.is_quiet:
            continue
        changed = _changed(example)
        places: list[list[int]] = []
        for change in (c for c in example.history if c.path is None):
            shift = len(change.inserted) - len(change.removed)
            for place in places:
                if change.start + len(change.removed) <= place[0]:
                    place[:] = [place[0] + shift, place[1] + shift]
            places.append([change.start, change.start + len(change.inserted)])
        assert not any(start < changed[1] and changed[0] < end for start, end in places)


def _changed(example) -> tuple[int, int]:
    """The lines of the current text that the target changes."""
    old, new = (text.splitlines(keepends=True) for text in (example.region_text, example.rewritten))
    head = tail = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = example.region[0] + sum(map(len, old[:head]))
    return start, example.region[1] - sum(map(len, old[len(old) - tail :]))


def test_the_import_is_the_target_and_its_uses_are_the_history(tokenizer):
    text = SHOP + "\n\nprint(1)\nprint(round_price(2))\n"
    found = [e for e in drawn(tokenizer, 60, shop(text)) if e.kind == "import" and not e.is_quiet]
    twice = [e for e in found if "import round_price" in e.rewritten]
    assert twice
    for example in found:
        assert set(example.rewritten.splitlines()) - set(example.region_text.splitlines()) <= {
            line for line in text.splitlines() if "import" in line
        }
    for example in twice:
        assert sum("round_price(" in change.inserted for change in example.history) == 2


def test_a_region_holds_whole_steps_and_a_quiet_one_holds_none():
    text = "a\nb\nc\nd\ne\n"
    stage = Stage("a.txt", "python", "x", text, (Site(0, 2, "A\n"), Site(2, 4, "B\n"), Site(6, 10, "D\nE\n")), 1)
    assert stage.next_edit(0, 2) is None
    whole = stage.next_edit(0, 3)
    assert whole is not None
    assert (whole.region_text, whole.rewritten) == ("b\nc\nd\ne\n", "B\nc\nD\nE\n")
    assert stage.quiet(2, 0, 0) is None
    assert stage.quiet(4, 0, 1) is None
    assert stage.quiet(0, 0, 1) is None
    done = Stage("a.txt", "python", "x", text, stage.steps, 3).quiet(4, 0, 1)
    assert done is not None
    assert done.is_quiet
    assert done.region_text == "c\nD\n"


def test_the_history_of_another_file_names_it_and_does_not_touch_the_document(examples):
    found = [example for example in examples if example.history[0].path]
    assert found
    for example in found:
        assert example.before == example.current
        paths = {change.path for change in example.history}
        assert len(paths) == 1
        assert paths != {example.path}
        assert f"@@ {example.history[-1].path}" in history_block(example.history, "python")


def test_a_stage_with_steps_in_any_order_ends_at_the_same_text():
    made = next(p for p in plans(rename, SHOP) if len(steps(p)) > 3)
    for seed in range(10):
        order = steps(made)
        random.Random(seed).shuffle(order)
        for done in range(len(order) + 1):
            stage = Stage("a.py", "python", "rename", SHOP, tuple(order), done)
            assert applied(stage.current, stage.open) == applied(SHOP, made.sites)
            assert [stage.current[slice(*span)] for span in stage.made] == [step.text for step in order[:done]]


# Versions of a file

OLD = "import a\n\n\ndef f(x):\n    return x\n\n\ny = f(1)\nz = 3\n\n\nq = 4\nr = 5\n\n\nw = f(2)\n"
NEW = OLD.replace("(x)", "(x, base)").replace("(1)", "(1, base=2)").replace("(2)", "(2, base=9)").replace("4", "40")


def test_hunks_become_edits_when_hunks_above_foretell_a_word():
    found = [e for seed in range(20) for e in from_versions("a.py", "python", OLD, NEW, random.Random(seed))]
    histories = {tuple(change.inserted for change in example.history) for example in found}
    first, second, third = "def f(x, base):\n", "y = f(1, base=2)\n", "q = 40\n"
    assert histories == {(first,), (first, second, third)}
    for example in found:
        assert (example.before, example.after) == (OLD, NEW)
        if not example.is_quiet:
            assert {1: second, 3: "w = f(2, base=9)\n"}[len(example.history)] in example.rewritten


def test_a_quarter_of_versions_has_no_edit_in_the_region():
    found = [e for seed in range(300) for e in from_versions("a.py", "python", OLD, NEW, random.Random(seed))]
    quiet = sum(example.is_quiet for example in found) / len(found)
    assert 0.18 < quiet < 0.32
    assert list(from_versions("a.py", "python", OLD, OLD, random.Random(0))) == []


def test_versions_become_gaps(tokenizer):
    sampler = EditSampler(tokenizer, random.Random(0))
    found = sampler.version_gaps(shop(OLD), replace(shop(), text=NEW), 4)
    assert found
    assert {gap.kind for gap in found} <= {"edit", "edit_none"}


# Layout


def test_blocks_are_comments_and_plain_code_newest_edit_last():
    history = [
        EditHunk(0, "def load(path):\n", "def load(path, encoding):\n"),
        EditHunk(9, "a = load(x)\nb = 1\n", 'a = load(x, "utf-8")\nb = 1\n', path="tools/show.py"),
    ]
    recent, region = edit_blocks(history, "    c = load(y)\n", "python")
    assert recent == (
        "# recent edits:\n# @@\n# -def load(path):\n# +def load(path, encoding):\n"
        '# @@ tools/show.py\n# -a = load(x)\n# +a = load(x, "utf-8")\n'
    )
    assert region.endswith("\n    c = load(y)\n")
    assert region.startswith("# ")
    assert edit_blocks([], "x\n", "python") == (region_block("x\n", "python"),)


@pytest.mark.parametrize(("language", "opening"), [("go", "// +x\n"), ("lua", "-- +x\n"), ("css", "/* +x */\n")])
def test_edits_are_told_in_comments_of_the_language(language, opening):
    assert history_block([EditHunk(0, "", "x\n")], language).endswith(opening)


def test_edits_can_be_read_back_from_their_block(examples, tokenizer):
    for example in examples:
        block = history_block(example.history, "python")
        assert tokenizer.decode(tokenizer.encode(block)) == block
        told = [line.removeprefix("# ") for line in block.splitlines()[1:]]
        groups = "\n".join(told).split("@@")[1:]
        for group, change in zip(reversed(groups), reversed(example.history), strict=False):
            lines = group.split("\n")[1:]
            removed, inserted = ([line[1:] for line in lines if line.startswith(mark)] for mark in ("-", "+"))
            ours, theirs = change.removed.splitlines(), change.inserted.splitlines()
            assert "\n".join(removed) in "\n".join(ours)
            assert "\n".join(inserted) in "\n".join(theirs)
            assert removed or inserted


def test_blocks_keep_their_limits():
    many = [EditHunk(0, f"old_{n} = {n}\n", f"new_{n} = {n}\n") for n in range(100)]
    block = history_block(many, "python")
    assert len(block) <= HISTORY_CHARS
    assert "new_99" in block
    assert "new_0 " not in block
    assert block.index("new_98") < block.index("new_99")
    rows = [EditHunk(0, "".join(f"row {n}\n" for n in range(90)), "".join(f"line {n}\n" for n in range(90)))]
    block = history_block(rows, "css")
    assert len(block) <= HISTORY_CHARS
    assert "-row 0" in block
    assert "+line 0" in block
    wide = history_block([EditHunk(0, "a" * 500 + "b\n", "a" * 500 + "c\n")], "python")
    assert len(wide) <= HISTORY_CHARS
    assert max(map(len, wide.splitlines())) <= LINE_CHARS + 4
    assert wide.splitlines()[-1].endswith("ac")


def test_gaps_are_laid_out_as_the_document_stands(tokenizer):
    sampler = EditSampler(tokenizer, random.Random(4), GapSettings(prefix_chars=400, suffix_chars=200))
    decode = tokenizer.decode
    count = 0
    for example in sampler.examples(shop(), 30):
        gap = sampler.gap(example)
        assert gap is not None
        (start, end), text = example.region, example.current
        blocks = edit_blocks(example.history, text[start:end], "python")
        far = [decode(list(block)) for block in gap.far]
        assert tuple(far[-len(blocks) :]) == blocks
        above = "".join(block for block in far[: -len(blocks)] if not block.startswith("# path: "))
        written = above + decode(gap.near) + decode(gap.target)
        assert (text[:start] + example.rewritten).endswith(written)
        assert text[end:].startswith("".join(decode(list(block)) for block in gap.suffix))
        assert 0 < len(gap.target) <= 48
        assert gap.kind == ("edit_none" if example.is_quiet else "edit")
        assert gap.truth == example.rewritten
        count += 1
    assert count > 20


def test_the_same_seed_draws_the_same_gaps(tokenizer):
    first, second = (EditSampler(tokenizer, random.Random(5)).gaps(shop(), 8) for _ in range(2))
    assert first == second
    assert first


def test_a_file_is_parsed_once_while_it_is_kept(tokenizer, monkeypatch):
    read = []
    parse = python_facts.read
    monkeypatch.setattr(source.python_facts, "read", lambda text: read.append(1) or parse(text))
    sampler = EditSampler(tokenizer, random.Random(0))
    sampler.gaps(shop(), 4)
    sampler.gaps(shop(), 4)
    assert len(read) == 1
    sampler.gaps(shop(SHOP + "\nx = 1\n"), 4)
    assert len(read) == 2


def test_a_long_file_is_cut_between_definitions(tokenizer):
    long = "".join(SHOP.replace("Shop", f"Shop{n}").replace('"""A shop."""\n', "") for n in range(20))
    for seed in range(20):
        text = source.cut_source(shop(long), random.Random(seed)).text
        assert len(text) <= source.MAX_SOURCE_CHARS
        assert ast.parse(text)
        assert text in long


def test_text_that_is_no_python_and_a_file_without_anything_draw_what_they_can(tokenizer):
    broken = shop(SHOP.replace("def show(", "def show(("))
    assert {example.kind for example in drawn(tokenizer, 10, broken)} <= {"rename", "extract", "key"}
    assert drawn(tokenizer, 3, broken)
    assert drawn(tokenizer, 3, shop("# nothing\n")) == []
    assert drawn(tokenizer, 3, shop("")) == []


# Without tree-sitter


@pytest.fixture
def no_tree_sitter(monkeypatch):
    tree_facts._grammar.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    monkeypatch.setattr(source, "_reported_languages", set())
    yield
    tree_facts._grammar.cache_clear()


def test_without_tree_sitter_words_are_edited_and_it_is_told_once(tokenizer, no_tree_sitter, caplog):
    with caplog.at_level(logging.WARNING):
        found = drawn(tokenizer, 20, shop(SCRIPT, "shop/a.js", "javascript"))
    assert {example.kind for example in found} <= {"rename", "extract", "key"}
    assert any(not example.is_quiet for example in found)
    assert [record.getMessage() for record in caplog.records].count(
        "no tree-sitter grammar for javascript: only edits of single words are sampled"
    ) == 1


def test_python_needs_no_tree_sitter(tokenizer, no_tree_sitter, examples):
    assert drawn(tokenizer, 5) == examples[: len(drawn(tokenizer, 5))]


def test_importing_the_package_imports_no_tree_sitter(monkeypatch):
    found = builtins.__import__

    def guarded(name, *rest):
        assert not name.startswith("tree_sitter")
        return found(name, *rest)

    for name in [name for name in sys.modules if name.startswith("mercury_engine.training.edits")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", guarded)
    __import__("mercury_engine.training.edits")
