"""A change made twice goes on where the same text or the same lines stand."""

from textwrap import dedent

import pytest
from lsprotocol import types

from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.pairs import MAX_SITES_ELSEWHERE, paired_edits
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language_of


class ExampleDesk:
    """A user who changes lines of documents."""

    def __init__(self, **texts: str):
        self.documents = OpenDocuments()
        self.history = History(self.documents)
        for name, text in texts.items():
            path = name.replace("__", ".")
            item = types.TextDocumentItem(f"file:///{path}", language_of(path), 1, dedent(text))
            self.documents.open(item)
            self.documents.snapshot(item.uri)

    def parsed(self, number: int = 0) -> Snapshot:
        uri = self.documents.uris[number]
        self.documents.finish_parsing(uri)  # however long it takes: without a tree nothing is offered
        return self.documents.snapshot(uri)

    def replace(self, *changes: tuple[str, str], number: int = 0) -> "ExampleDesk":
        """Replace the first occurrence of each text."""
        for old, new in changes:
            snapshot = self.parsed(number)
            start = snapshot.text.index(old)
            span = (types.Position(*snapshot.position_at(at)) for at in (start, start + len(old)))
            change = types.TextDocumentContentChangePartial(types.Range(*span), new)
            self.history.record(snapshot.uri, self.documents.change(snapshot.uri, 2, [change]))
        return self

    def offered(self, number: int = 0, invoked: bool = False) -> list[tuple[int, str, str]]:
        """Line, old and new text of what would follow in a document."""
        hunks, snapshot = self.history.hunks(), self.parsed(number)
        origin = self.parsed(self.documents.uris.index(hunks[-1].uri))
        found = [edit for _, edit in paired_edits(hunks, snapshot, origin, invoked)]
        return [(snapshot.source.line_of(edit.start), edit.removed, edit.inserted) for edit in found]


# Replacements

ADJACENT = {
    "a keyword": ("js", "var a = 1;\nvar b = f(2);\nvar c = [3];\nvar d = 4;\n", "var ", "const "),
    "a mark": ("html", "<p>a = 1</p>\n<p>b = 2</p>\n<p>c = 3</p>\n", "=", "&lt;"),
}


@pytest.mark.parametrize(("language", "text", "old", "new"), ADJACENT.values(), ids=ADJACENT)
def test_a_short_text_is_replaced_in_the_line_below_two_examples(language, text, old, new):
    desk = ExampleDesk(**{f"a__{language}": text}).replace((old, new))
    assert desk.offered() == []
    assert desk.replace((old, new)).offered() == [(2, old.strip(), new.strip())]


@pytest.mark.parametrize("third", ["// var c;", "x = var;", "", "let c;", "\n\nvar c;"])
def test_a_short_text_elsewhere_is_left_alone(third):
    desk = ExampleDesk(a__js=f"var a;\nvar b;\n{third}\n").replace(("var a", "const a"), ("var b", "const b"))
    assert desk.offered() == []


@pytest.mark.parametrize(("apart", "is_near"), [(0, True), (38, True), (39, False)])
def test_a_far_place_is_left_alone_unasked(apart, is_near):
    text = "first(old_name)\nsecond(old_name)\n" + "\n" * apart + "third(old_name)\n"
    desk = ExampleDesk(a__py=text).replace(("first(old_name", "first(new_name"), ("second(old_name", "second(new_name"))
    third = [(apart + 2, "old_name", "new_name")]
    assert desk.offered(invoked=True) == third and desk.offered() == third * is_near


@pytest.mark.parametrize(
    "third",
    ["# old_name", 'x = "old_name"', "new_name = old_name", "x.my_old_name"],
    ids=["comment", "string", "x = x", "part"],
)
def test_another_kind_of_place_is_left_alone(third):
    desk = ExampleDesk(a__py=f"f(old_name)\ng(old_name)\n{third}\n")
    assert desk.replace(("f(old_name", "f(new_name"), ("g(old_name", "g(new_name")).offered() == []


@pytest.mark.parametrize(("path", "lines"), [("a__py", []), ("a__toml", [2])])
def test_a_change_in_strings_goes_on_where_strings_are_data(path, lines):
    desk = ExampleDesk(**{path: 'a = "old_name"\nb = "old_name"\nc = "old_name"\n'})
    desk.replace(('a = "old_name', 'a = "new_name'), ('b = "old_name', 'b = "new_name'))
    assert [line for line, _, _ in desk.offered()] == lines


# Lines changed alike

ALIKE = {
    "around other words": (
        "py",
        'host = env.get("HOST")\nport = env.get("PORT")\nname = f(1)\nuser = env.get("USER")\n',
        ('host = env.get("HOST")', 'host = env["HOST"]'),
        ('port = env.get("PORT")', 'port = env["PORT"]'),
        (3, '.get("USER")', '["USER"]'),
    ),
    "with a word of the line's own": (
        "rb",
        "a = {\n  :id => id,\n  :state => state,\n  :total => total,\n}\n",
        (":id => id", "id: id"),
        (":state => state", "state: state"),
        (3, ":total =>", "total:"),
    ),
    "a call around what differs": (
        "cpp",
        "void f() {\n  out << one(sub);\n  out << two(sub, mode);\n  out << three(sub, mode);\n}\n",
        ("out << one(sub)", "out << indent(one(sub), n)"),
        ("out << two(sub, mode)", "out << indent(two(sub, mode), n)"),
        (3, "three(sub, mode", "indent(three(sub, mode), n"),
    ),
    "a sibling": (
        "ts",
        "interface A {\n  id: string;\n  name: string;\n  total: number;\n}\n",
        ("  id", "  readonly id"),
        ("  name", "  readonly name"),
        (3, "", "readonly "),
    ),
}


@pytest.mark.parametrize(("language", "text", "first", "second", "third"), ALIKE.values(), ids=ALIKE)
def test_what_two_lines_exchange_the_third_does(language, text, first, second, third):
    desk = ExampleDesk(**{f"a__{language}": text}).replace(first)
    assert desk.offered() == []
    assert desk.replace(second).offered()[:1] == [third]


@pytest.mark.parametrize("third", ["}\n\ntype B = number;", "\n\n  total: number;\n}"])
def test_a_line_of_another_sort_or_at_another_distance_is_left_alone(third):
    desk = ExampleDesk(a__ts=f"interface A {{\n  id: string;\n  name: string;\n{third}\n")
    assert desk.replace(("  id", "  readonly id"), ("  name", "  readonly name")).offered() == []


# Insertions and deletions

ROWS = "a = {\n    'one': one,\n    'end': end,\n}\n"


INSERTED = ("    'one': one,\n", "    'one': one,\n    'two': two,\n")


def test_a_line_is_inserted_between_the_lines_that_both_examples_have_around_it():
    text = ROWS + ROWS.replace("a =", "b =") + ROWS.replace("a =", "if c:\n    c =")
    desk = ExampleDesk(a__py=text).replace(INSERTED)
    assert desk.offered() == []
    again = ("b = {\n" + INSERTED[0], "b = {\n" + INSERTED[1])
    assert desk.replace(again).offered() == [(13, "", "    'two': two,\n")]


INDENTED = {
    "below the head of a block": ("for a in first_rows:", "    log()", "    use(a)"),
    "below a block": ("        use(a)", "    log()", "    return first_rows"),
}


@pytest.mark.parametrize(("above", "new", "below"), INDENTED.values(), ids=INDENTED)
def test_inserted_lines_are_indented_as_in_the_examples(above: str, new: str, below: str):
    places = [f"{above}\n{below}\n" for _ in range(2)] + [f"  {above}\n  {below}\n"]
    text = "".join(f"def f{number}():\n{place}\n" for number, place in enumerate(places))
    changes = [(f"f{n}():\n{above}\n", f"f{n}():\n{above}\n{new}\n") for n in range(2)]
    assert [found for _, _, found in ExampleDesk(a__txt=text).replace(*changes).offered()] == [f"  {new}\n"]


@pytest.mark.parametrize("old", ["", "    errors: [error],\n"], ids=["inserted", "replaced"])
def test_lines_of_data_are_left_to_the_user(old):
    text = "".join(f"item({{\n    name: {name},\n{old}}})\n" for name in "abc")
    new = "    errors: [\n        {\n            line: 1,\n        },\n    ],\n"
    changes = [(f"    name: {name},\n{old}", f"    name: {name},\n{new}") for name in "ab"]
    assert ExampleDesk(a__js=text).replace(*changes).offered() == []


@pytest.mark.parametrize(("uses", "is_offered"), [(MAX_SITES_ELSEWHERE, True), (MAX_SITES_ELSEWHERE + 1, False)])
def test_a_text_that_stands_often_in_another_document_is_replaced_there_by_key_only(uses: int, is_offered: bool):
    text, other = "f(old_name)\ng(old_name)\n", "".join(f"f{n}(old_name)\n" for n in range(uses))
    desk = ExampleDesk(a__py=text, b__py=other).replace(("f(old_name", "f(new_name"), ("g(old_name", "g(new_name"))
    assert bool(desk.offered(1)) is is_offered
    assert len(desk.offered(1, invoked=True)) == uses


def test_the_same_lines_are_removed_again_with_their_indentation():
    text = "def f():\n    check(a)\n    check(b)\n    return\n"
    nested = "class A:\n    def g():\n        check(a)\n        check(b)\n"
    gone = ("    check(a)\n    check(b)\n    return", "    return")
    desk = ExampleDesk(a__py=text * 2 + nested).replace(gone, gone)
    assert desk.offered() == [(6, "        check(a)\n        check(b)\n", "")]


def test_a_third_insertion_that_is_begun_is_finished():
    text = "start()\n\nstop()\n\nend()\n\n"
    line = "log.info('the step is done')\n"
    desk = ExampleDesk(a__py=text).replace(("start()\n", f"start()\n{line}"), ("stop()\n", f"stop()\n{line}"))
    assert desk.replace(("end()\n", "end()\nlog.info(\n")).offered() == [(7, "", "'the step is done')")]


# Never


def test_one_example_says_nothing():
    assert ExampleDesk(a__py="f(old_name)\ng(old_name)\n").replace(("f(old_name", "f(new_name")).offered() == []


def test_other_documents_follow():
    desk = ExampleDesk(a__py="f(old_name)\ng(old_name)\n", b__py="h(old_name)\n").replace(("f(old_name", "f(new_name"))
    assert desk.offered(1) == []
    assert desk.replace(("g(old_name", "g(new_name")).offered(1) == [(0, "old_name", "new_name")]
