"""A renaming reaches every place that means the same name, in each language, and no other."""

import re
from textwrap import dedent

import pytest

from mercury_lsp.completion.next_edits.edit_sites import EditSite, syntax_kind
from mercury_lsp.completion.next_edits.elsewhere import sites_elsewhere
from mercury_lsp.completion.next_edits.renaming import renamed
from mercury_lsp.documents.document import Document
from mercury_lsp.documents.languages import language_of
from tests.support.next_edit_desk import RENAMED, NextEditDesk

CASES = {
    "a parameter": ("python", "def f(<count>):\n    x = [<count>]\n    return f'{<count>}' + x.count\n\ncount = 1\n"),
    "a name behind a comment's full stop": (
        "python",
        "def f():\n    # the end.\n    <count> = 1\n    return <count>\n\ncount = 2\n",
    ),
    "a private attribute": (
        "python",
        """\
        class A:
            def __init__(self):
                self.<_count> = 1
            def __eq__(self, other):
                return self.<_count> == other.<_count>
        class B:
            _count = 1
        """,
    ),
    "a private method": (
        "python",
        """\
        class A:
            def <_load>(self):
                return self.<_load>()
        def _load():
            return _load()
        """,
    ),
    "a class attribute": ("python", "class A:\n    <count>: int = 0\n    def f(self):\n        return self.<count>\n"),
    "an object's key stays": ("javascript", "function f(<count>) { return { <count>, a: <count>, count: 1 }; }\n"),
    "a private field": (
        "typescript",
        """\
        class A {
            private <count> = 0;
            f(count: number) { this.<count> = count; return { count: this.<count> }; }
        }
        """,
    ),
    "a hash field": ("javascript", "class A { #<count> = 0; f() { return this.#<count>; } }\n"),
    "a pattern": ("typescript", "const f = (<count>: number) => { g(<count>); return x.count + <count>; };\n"),
    "a field in Java": (
        "java",
        """\
        class A {
            private int <count>;
            void f(int count) { this.<count> = count; }
            int g() { return <count> + 1; }
        }
        """,
    ),
    "a local name in Java": ("java", "class A { int f(int <count>) { int x = <count>; return x + <count>; } }\n"),
    "a method in Java": ("java", "class A { private int <load>() { return 1; } int g() { return <load>(); } }\n"),
    "a function in C": ("c", "int <load>(int a) { return a; }\nint main() { return <load>(1); }\n"),
    "a parameter in C": ("c", "int f(int <count>) { return <count> * x.count; }\nint g(int count) { return count; }\n"),
    "a member in C++": ("cpp", "class A { int <count_>; void f() { <count_> = 1; this-><count_> = 2; } };\n"),
    "a field in Go": (
        "go",
        "package a\ntype A struct { <count> int }\n"
        "func (a *A) f(count int) A { a.<count> = count; return A{<count>: 1} }\n",
    ),
    "a method in Go": ("go", "package a\nfunc (a *A) <load>() {}\nfunc (a *A) f() { a.<load>() }\n"),
    "a parameter in Go": ("go", "package a\nfunc f(<count> int) A { return A{count: <count>} }\n"),
    "a field in Rust": (
        "rust",
        """\
        struct A { <count>: i32 }
        impl A {
            fn f(&self, count: i32) -> A { let x = self.<count> + count; A { <count>: x } }
        }
        """,
    ),
    "a method in Rust": ("rust", "impl A { fn <load>(&self) { self.<load>(); Self::<load>(self) } }\n"),
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
    "a variable in a shell": (
        "shellscript",
        """\
        <limit>=3
        check() {
            local limit=1
            echo "$limit"
        }
        run() {
            limit --all
            [ "${<limit>:-2}" -gt 1 ] && echo "$((<limit> + 1)) limit"
            read -r <limit>
        }
        """,
    ),
    "a variable of a shell's function": (
        "shellscript",
        """\
        limit=3
        check() {
            local <limit>
            <limit>=1
            echo "$<limit>"
        }
        echo "$limit"
        """,
    ),
    "a function in a shell": ("bash", "<load>() { echo load; }\n<load> a\nx=$(<load> b)\n"),
    "a field in Lua": (
        "lua",
        """\
        function Cart.new()
            return setmetatable({ <count> = 0 }, Cart)
        end
        function Cart:add(item)
            self.<count> = self.<count> + item.count
        end
        function Till:add()
            self.count = 1
        end
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
    snapshot = desk.document.parsed()
    renaming = desk.repeatable.renaming(desk.repeatable.replacement(snapshot), snapshot)
    assert sorted(site.start for site in renaming.left) == [each for each in places if each != at]
    assert (renaming.made, renaming.total) == (1, len(places))


def test_a_shorthand_keeps_the_key():
    desk = NextEditDesk("function f(count) {\n    return { count };\n}\n", "javascript").replace("count", "total")
    assert desk.texts() == [("count", "count: total")]
    desk = NextEditDesk("fn f(count: i32) -> A { A { count } }\n", "rust").replace("count", "total")
    assert desk.texts() == [("count", "count: total")]


def test_a_field_that_two_structures_have_is_not_renamed():
    text = "struct A { count: i32 }\nstruct B { count: i32 }\nfn f(a: A) -> i32 { a.count }\n"
    desk = NextEditDesk(text, "rust").replace("count", "total")
    assert desk.texts(invoked=True) == []


def test_places_in_a_long_file_of_the_same_name_are_all_found():
    others = "".join(f"def g{n}(count):\n    return count\n\n" for n in range(150))
    desk = NextEditDesk("def f(count):\n    x = count\n    return count\n\n" + others).replace("x = count", "x = total")
    snapshot = desk.document.parsed()
    renaming = desk.repeatable.renaming(desk.repeatable.replacement(snapshot), snapshot)
    assert [snapshot.position_at(site.start)[0] for site in renaming.left] == [2, 0]


def test_a_renaming_that_would_break_the_syntax_is_not_made_at_all():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    snapshot = desk.document.parsed()
    sites = desk.repeatable.sites(desk.repeatable.replacement(snapshot), snapshot, invoked=True)
    assert renamed(snapshot, sites).sites == tuple(sites)
    assert renamed(snapshot, [*sites[:-1], EditSite(sites[-1].start, sites[-1].old, "a b")]) is None


# In other documents

ELSEWHERE = {
    "a field of a header": (
        ("box.h", "struct box {\n    int <count>;\n};\n"),
        ("fill.c", '#include "box.h"\nint f(struct box *b, int count) { return b-><count> + count; }\n'),
    ),
    "a member of a class in a header": (
        ("box.hpp", "class Box {\n    int <count_>;\n};\n"),
        ("box.cpp", '#include "box.hpp"\nvoid Box::f() { <count_> += 1; }\nint g(int count_) { return count_; }\n'),
    ),
    "a field that another structure has too": (
        ("box.h", "struct box {\n    int <count>;\n};\n"),
        ("fill.c", '#include "box.h"\nstruct lid { int count; };\nint f(struct box *b) { return b->count; }\n'),
    ),
    "a header that is not included": (
        ("box.h", "struct box {\n    int <count>;\n};\n"),
        ("fill.c", "int f(struct lid *b) { return b->count; }\n"),
    ),
    "a function of a Lua module": (
        ("till/cart.lua", "local M = {}\nfunction M.<load>() end\nreturn M\n"),
        ("till/init.lua", 'local basket = require("till.cart")\nbasket.<load>()\nother.load()\nload()\n'),
    ),
    "a module under another name": (
        ("tools.py", "def <load>():\n    pass\n"),
        ("user.py", "import tools as t\n\nt.<load>()\nx.load()\n"),
    ),
    "an imported name, and a parameter of that name": (
        ("tools.py", "def <load>():\n    pass\n"),
        ("user.py", "from tools import <load>\n\n<load>()\n\ndef f(load):\n    return load\n"),
    ),
    "a function of a Go package": (
        ("till/cart.go", "package till\nfunc <load>() {}\n"),
        ("till/sum.go", "package till\nfunc f() { <load>() }\nfunc g(load int) int { return load }\n"),
    ),
    "a field of a Go package": (
        ("till/cart.go", "package till\ntype Cart struct { <count> int }\n"),
        ("till/sum.go", "package till\nfunc f(c Cart, count int) int { return c.<count> + count }\n"),
    ),
}


@pytest.mark.parametrize("title", ELSEWHERE)
def test_a_renaming_has_places_in_other_documents(title: str):
    (path, text), (other_path, other_text) = ELSEWHERE[title]
    bare, name, [at] = marked(text)
    desk = NextEditDesk(bare, language_of(path))
    desk.put(at, name, "renamed")
    snapshot = desk.document.parsed()
    replacement = desk.repeatable.replacement(snapshot)
    expected = [found.start() - 2 * n for n, found in enumerate(re.finditer(rf"<{name}>", other_text))]
    other = Document("file:///b", language_of(other_path), 1, other_text.replace(f"<{name}>", name)).parsed()
    kind = syntax_kind(replacement, snapshot)
    found = sites_elsewhere((name, "renamed"), kind, path, snapshot.language_id, other, other_path)
    assert [site.start for site in found] == expected
    renaming = desk.repeatable.renaming(replacement, snapshot, path, [(other, other_path)])
    assert renaming.remaining == len(expected)


def test_a_local_name_has_no_places_elsewhere():
    desk = NextEditDesk("def f(load):\n    return load\n").replace("load", "read")
    snapshot, other = desk.document.parsed(), Document("file:///b", "python", 1, "from a import load\n").parsed()
    renaming = desk.repeatable.renaming(desk.repeatable.replacement(snapshot), snapshot, "a.py", [(other, "b.py")])
    assert renaming.elsewhere == () and renaming.remaining == 1
