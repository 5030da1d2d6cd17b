"""Each kind of edit changes all the sites that it should, and no others."""

import ast
import re

import pytest
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
from mercury_lab.training.edits.plan import Site, applied, flipped, plan

from tests.support.edit_samples import KINDS, SCRIPT, SHOP, outcomes, plans


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
