"""A renaming reaches every place that means the same name, in each language, and no other."""

import re
from textwrap import dedent

import pytest

from mercury_lsp.completion.next_edits import RenamedDocument
from mercury_lsp.documents.document import Edit
from tests.support.next_edit_desk import RENAMED, NextEditDesk

CASES = {
    "a parameter": ("python", "def f(<count>):\n    x = [<count>]\n    return f'{<count>}' + x.count\n\ncount = 1\n"),
    "a name behind a comment's full stop": (
        "python",
        "def f():\n    # the end.\n    <count> = 1\n    return <count>\n\ncount = 2\n",
    ),
    "an object's key stays": ("javascript", "function f(<count>) { return { <count>, a: <count>, count: 1 }; }\n"),
    "a pattern": ("typescript", "const f = (<count>: number) => { g(<count>); return x.count + <count>; };\n"),
    "a local name in Java": ("java", "class A { int f(int <count>) { int x = <count>; return x + <count>; } }\n"),
    "a function in C": ("c", "int <load>(int a) { return a; }\nint main() { return <load>(1); }\n"),
    "a parameter in C": ("c", "int f(int <count>) { return <count> * x.count; }\nint g(int count) { return count; }\n"),
    "a parameter in Go": ("go", "package a\nfunc f(<count> int) A { return A{count: <count>} }\n"),
    "a name of the file": (
        "python",
        """\
        <limit> = 3
        def f(limit):
            return limit
        def g():
            global <limit>
            <limit> = 4
            def h():
                limit = 5
                return limit
            return <limit>
        """,
    ),
    "a local in Lua": ("lua", "local function f(<count>) local t = {count = <count>} return t.count end\n"),
}


def marked(text: str) -> tuple[str, str, list[int]]:
    """The text without its marks, the name they hold, and its places."""
    text = dedent(text)
    [name] = {*re.findall(r"<(\w+)>", text)}
    places, bare = [], ""
    for part in re.split(rf"(<{name}>)", text):
        if part == f"<{name}>":
            places.append(len(bare))
            part = name
        bare += part
    return bare, name, places


@pytest.mark.parametrize("title", CASES)
@pytest.mark.parametrize("begun_at", ["the first place", "the last place"])
def test_all_places_of_a_name_and_no_others_are_renamed(title: str, begun_at: str):
    language, text = CASES[title]
    bare, name, places = marked(text)
    at = places[0] if begun_at == "the first place" else places[-1]
    desk = NextEditDesk(bare, language)
    new = "x" + "z" * (len(name) - 1)  # of the same length, so that the places stay
    assert desk.text
    desk.put(at, name, new)
    renaming = desk.renaming()
    assert sorted(site.start for site in renaming.left) == [each for each in places if each != at]
    assert (renaming.made, renaming.total) == (1, len(places))


def test_a_shorthand_keeps_the_key():
    desk = NextEditDesk("function f(count) {\n    return { count };\n}\n", "javascript").replace("count", "total")
    assert desk.texts() == [("count", "count: total")]
    desk = NextEditDesk("fn f(count: i32) -> A { A { count } }\n", "rust").replace("count", "total")
    assert desk.texts() == [("count", "count: total")]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "class A:\n    count = 0\n\ndef f(a, count):\n    a.count = count\n    return a.count\n"),
        ("typescript", "class A { private count = 0; f() { return this.count; } }\n"),
        ("go", "package a\ntype A struct { count int }\nfunc (a *A) f() int { return a.count }\n"),
        ("rust", "struct A { count: i32 }\nfn f(a: A) -> i32 { a.count }\n"),
    ],
)
def test_members_of_others_and_declared_ones_are_left_to_language_servers(language: str, text: str):
    assert NextEditDesk(text, language).replace("count", "total").texts() == []


@pytest.mark.parametrize(
    ("language", "text", "lines"),
    [
        (
            "python",
            "class A:\n def f(self, count):\n  self.count = count\n  self.count += 1\nclass B:\n self.count",
            [3],
        ),
        ("javascript", "class A { f(count) { this.count = count;\nreturn this.count + a.count; } }\nthis.count\n", [1]),
        ("lua", "function A:f(count) self.count = count\nself.count = 2 end\n", [1]),
    ],
)
def test_a_member_of_self_is_renamed_in_its_class(language: str, text: str, lines: list[int]):
    desk = NextEditDesk(text, language)
    old, new = ("this.count", "this.total") if language == "javascript" else ("self.count", "self.total")
    assert (desk.replace(old, new).lines(), desk.must_go_on()) == (lines, True)


def test_places_in_a_long_file_of_the_same_name_are_all_found():
    others = "".join(f"def g{n}(count):\n    return count\n\n" for n in range(150))
    desk = NextEditDesk("def f(count):\n    x = count\n    return count\n\n" + others).replace("x = count", "x = total")
    assert desk.lines() == [2, 0]


def test_a_renaming_that_would_break_the_syntax_is_not_made_at_all():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    snapshot = desk.snapshot
    sites = desk.renaming().left
    assert RenamedDocument.of(snapshot, sites).edits == [*sites]
    assert RenamedDocument.of(snapshot, [*sites[:-1], Edit(sites[-1].start, sites[-1].removed, "a b")]) is None
