"""A change made twice goes on where the same text or the same lines stand."""

import re
from difflib import SequenceMatcher
from textwrap import dedent, indent
from unittest.mock import patch

import pytest
from lsprotocol import types

from mercury_lsp.completion.next_edits import edit_sites, examples, pairs, templates
from mercury_lsp.completion.next_edits.edit_sites import MAX_NEAR
from mercury_lsp.completion.next_edits.examples import MAX_LINES
from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.pairs import MAX_SITES, MAX_SITES_ELSEWHERE, TEMPLATE_LINES, paired_sites
from mercury_lsp.completion.next_edits.templates import MAX_LINE_CHARS
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
        found = [site for _, site in paired_sites(hunks, snapshot, origin, invoked)]
        return [(snapshot.source.line_of(site.start), site.old, site.new) for site in found]


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


def test_a_long_text_is_replaced_wherever_it_stands_by_key_and_unasked_in_the_direction_of_the_user():
    text = "first(old_name)\nsecond(old_name)\n\nthird(old_name)\n\n\nlast = (old_name)\n"
    desk = ExampleDesk(a__py=text).replace(("second(old_name", "second(new_name"), ("third(old_name", "third(new_name"))
    below, above = (6, "old_name", "new_name"), (0, "old_name", "new_name")
    assert desk.offered(invoked=True) == [below, above] and desk.offered() == [below]
    upwards = ExampleDesk(a__py=text).replace(
        ("third(old_name", "third(new_name"), ("second(old_name", "second(new_name")
    )
    assert upwards.offered() == [above]


def test_a_text_in_another_place_than_both_examples_is_left_alone_unasked():
    text = "first(old_name)\nsecond(old_name)\nthird = old_name\n"
    desk = ExampleDesk(a__py=text).replace(("first(old_name", "first(new_name"), ("second(old_name", "second(new_name"))
    assert desk.offered(invoked=True) == [(2, "old_name", "new_name")] and desk.offered() == []


@pytest.mark.parametrize(("apart", "is_near"), [(0, True), (38, True), (39, False)])
def test_a_far_place_is_left_alone_unasked(apart, is_near):
    text = "first(old_name)\nsecond(old_name)\n" + "\n" * apart + "third(old_name)\n"
    desk = ExampleDesk(a__py=text).replace(("first(old_name", "first(new_name"), ("second(old_name", "second(new_name"))
    third = [(apart + 2, "old_name", "new_name")]
    assert desk.offered(invoked=True) == third and desk.offered() == third * is_near


def test_what_stands_around_both_examples_makes_a_short_text_long_enough():
    text = "f(min=2, max=9)\ng(2)\nh(min=2, max=9)\nk(min=2, max=9)\nn = 2\n"
    desk = ExampleDesk(a__py=text).replace(("f(min=2", "f(min=1"), ("h(min=2", "h(min=1"))
    assert desk.offered() == [(3, "2", "1")]


def test_an_argument_follows_where_all_that_the_examples_share_stands_before_it():
    text = "a = load(url)\nb = load(url)\n\nc = load(url)\nd = load(path)\nload(url, 1)\n"
    desk = ExampleDesk(a__py=text).replace(("a = load(url)", "a = load(url, timeout)"))
    desk.replace(("b = load(url)", "b = load(url, timeout)"))
    assert desk.offered() == [(3, "", ", timeout")]


@pytest.mark.parametrize(
    "third",
    ["# old_name", 'x = "old_name"', "new_name = old_name", "x.my_old_name"],
    ids=["comment", "string", "x = x", "part"],
)
def test_another_kind_of_place_is_left_alone(third):
    desk = ExampleDesk(a__py=f"f(old_name)\ng(old_name)\n{third}\n")
    assert desk.replace(("f(old_name", "f(new_name"), ("g(old_name", "g(new_name")).offered() == []


def test_a_change_in_comments_goes_on_in_comments():
    desk = ExampleDesk(a__py="# see old.org\nx = 1  # old.org\ny = old.org\n# old.org, too\n")
    desk.replace(("see old", "see new"), ("x = 1  # old", "x = 1  # new"))
    assert [line for line, _, _ in desk.offered()] == [3]


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


@pytest.mark.parametrize("end", ["\r\n", "  \n"], ids=["crlf", "blanks"])
@pytest.mark.parametrize("old", ['env.get("{}")', "id: {};"], ids=["anywhere", "a sibling"])
def test_the_end_of_a_line_changed_alike_stays(old: str, end: str):
    rows = [old.format(name) for name in ("host", "port", "user")]
    changes = [(row, row.replace(".get(", "[").replace(")", "]").replace("id", "no")) for row in rows]
    found = ExampleDesk(a__ts="".join(row + end for row in rows)).replace(*changes[:2]).offered()
    assert found and not any(was.endswith(("\r", " ")) for _, was, _ in found)


def test_nothing_is_made_of_an_empty_line():
    desk = ExampleDesk(a__txt="one\ntwo\n\nfour\n")
    assert desk.replace(("one", "export one"), ("two", "export two")).offered() == []


def test_lines_changed_alike_in_other_documents_follow():
    rows = [f'{name} = env.get("{name.upper()}")' for name in ("host", "port", "user")]
    changes = [(row, row.replace(".get(", "[").replace(")", "]")) for row in rows]
    desk = ExampleDesk(a__py="\n".join(rows[:2]) + "\n", b__py=rows[2] + "\n").replace(*changes[:2])
    assert desk.offered(1) == [(0, '.get("USER")', '["USER"]')]


def test_lines_without_the_words_that_the_examples_share_are_not_compared():
    rows = [f'opt_{name} = env.get("{name.upper()}")' for name in "abcdef"]
    desk = ExampleDesk(a__py="\n".join(rows) + "\n", b__py="value = compute(alpha)\n" * 300)
    desk.replace(*((row, row.replace(".get(", "[").replace(")", "]")) for row in rows))
    with patch.object(templates.re, "fullmatch", wraps=re.fullmatch) as compared:
        assert desk.offered() == desk.offered(1) == []
    assert compared.call_count <= 2 * len(rows) ** 2


def test_of_many_lines_with_the_words_of_the_examples_the_nearest_are_compared():
    rows = [f'opt_{name} = env.get("{name.upper()}")' for name in "abcdef"]
    line = 'value = env.get("alpha", 1)\n'
    desk = ExampleDesk(a__py=line * 100 + "\n".join(rows) + "\n" + line * 100)
    desk.replace(*((row, row.replace(".get(", "[").replace(")", "]")) for row in rows))
    with patch.object(templates, "_edits", wraps=templates._edits) as compared:
        assert desk.offered() == []
    assert 0 < compared.call_count <= len(rows) ** 2 * 2 * MAX_NEAR


def test_long_lines_are_no_examples_for_others():
    rows = ["row = [" + "0, " * count + "1]" for count in (MAX_LINE_CHARS, MAX_LINE_CHARS + 1)]
    desk = ExampleDesk(a__py="\n\n".join(rows))
    desk.replace(*((row, row.replace("row", "column")) for row in rows))
    with patch.object(templates, "SequenceMatcher", wraps=SequenceMatcher) as compared:
        assert desk.offered() == []
    assert compared.call_count == 0


def test_where_the_exchanged_marks_are_not_found_whole_lines_are_compared():
    text = 'ask(message, name, function(new)\nask("Its name:", base, function(made)\n\nask(text, base, function(made)\n'
    changes = [(f" {name},", f" escaped({name}),") for name in ("name", "base")]
    assert ExampleDesk(a__lua=text).replace(*changes).offered() == [(3, "base", "escaped(base)")]


@pytest.mark.parametrize("third", ["}\n\ntype B = number;", "\n\n  total: number;\n}"])
def test_a_line_of_another_sort_or_at_another_distance_is_left_alone(third):
    desk = ExampleDesk(a__ts=f"interface A {{\n  id: string;\n  name: string;\n{third}\n")
    assert desk.replace(("  id", "  readonly id"), ("  name", "  readonly name")).offered() == []


# Where a text stands


def test_a_short_text_is_left_alone_beside_other_marks_than_both_examples_have():
    text = "a: on-latest\nb: on-latest\nc: image:latest\nd: on-latest\n"
    desk = ExampleDesk(a__yaml=text).replace(("a: on-latest", "a: on-24.04"), ("b: on-latest", "b: on-24.04"))
    assert [line for line, _, _ in desk.offered()] == [3]


@pytest.mark.parametrize("other", ["x.flush", "x->flush", "X::flush", "f().flush"])
def test_a_plain_name_is_no_member(other):
    desk = ExampleDesk(a__cpp=f"void f() {{\n  a(flush);\n  b(flush);\n  c(flush);\n  d({other});\n}}\n")
    assert {line for line, _, _ in desk.replace(("a(flush", "a(drain"), ("b(flush", "b(drain")).offered()} == {3}


def test_calls_changed_to_a_function_that_is_there_do_not_rename_the_old_one():
    text = (
        "def old_load(x): return x\n\ndef new_load(x): return x\n\na = old_load(1)\nb = old_load(2)\nc = old_load(3)\n"
    )
    desk = ExampleDesk(a__py=text).replace(("a = old_load", "a = new_load"), ("b = old_load", "b = new_load"))
    assert [line for line, _, _ in desk.offered()] == [6]


def test_words_are_not_joined():
    text = "void f() {\n  *base = p;\n  g(*base, 1);\n  byte* base = q;\n  h(*base);\n}\n"
    desk = ExampleDesk(a__c=text).replace(("*base = p", "os_base = p"), ("g(*base", "g(os_base"))
    assert desk.offered() == [(4, "*base", "os_base")]


def test_blanks_that_stay_beside_removed_text_stay_in_other_lines_too():
    text = "def f():\n    return opts.cmd\n    x = opts.cmd\n    opts.cmd = 1\n"
    desk = ExampleDesk(a__py=text).replace(("return opts.cmd", "return cmd"), ("x = opts.cmd", "x = cmd"))
    assert desk.offered() == [(3, "opts.", "")]


# Insertions and deletions

ROWS = "a = {\n    'one': one,\n    'end': end,\n}\n"


INSERTED = ("    'one': one,\n", "    'one': one,\n    'two': two,\n")


def test_a_line_is_inserted_between_the_lines_that_both_examples_have_around_it():
    text = ROWS + ROWS.replace("a =", "b =") + ROWS.replace("a =", "if c:\n    c =")
    desk = ExampleDesk(a__py=text).replace(INSERTED)
    assert desk.offered() == []
    again = ("b = {\n" + INSERTED[0], "b = {\n" + INSERTED[1])
    assert desk.replace(again).offered() == [(13, "", "    'two': two,\n")]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("body", "old", "new"),
    [("", "", "\n    log(x)"), ("    x.check()\n    x.show()\n", "    x.check()\n    x.show()", "    log(x)")],
    ids=["inserted", "replaced"],
)
def test_the_last_line_of_a_document_may_have_no_break(body: str, old: str, new: str, end: str):
    opened = [f"def {name}():\n    x = open_all()\n" for name in "abc"]
    text = (
        "".join(each + body + f"    return {number}\n\n" for number, each in enumerate(opened[:2])) + opened[2] + body
    )
    changes = [(each + body, each + "    log(x)\n") for each in opened[:2]]
    desk = ExampleDesk(a__py=text.rstrip("\n").replace("\n", end))
    desk.replace(*((was.replace("\n", end), now.replace("\n", end)) for was, now in changes))
    assert [(was, now) for _, was, now in desk.offered()] == [(old.replace("\n", end), new.replace("\n", end))]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_inserted_lines_with_an_empty_one_are_indented_like_their_place(end: str):
    classes = [f"class {name}:\n    kind = first_kind\n" for name in "abc"]
    method = "\n    def go(self):\n        return self.kind\n"
    desk = ExampleDesk(a__py="".join((*classes[:2], indent(classes[2], "  "))).replace("\n", end))
    desk.replace(*((each.replace("\n", end), (each + method).replace("\n", end)) for each in classes[:2]))
    assert desk.offered() == [(12, "", indent(method, "  ").replace("\n", end))]


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


def test_inserted_lines_that_begin_with_different_blanks_keep_them():
    head, new = "for_each_row(a):\n", "\tlog_it()\n    count_it()\n"
    desk = ExampleDesk(a__txt=f"{head}\tuse_it(a)\n" * 2 + f"{head}    use_it(a)\n{head}")
    desk.replace(*[(f"{head}\tuse", f"{head}{new}\tuse")] * 2)
    assert desk.offered() == [(9, "", new)]


def test_of_many_lines_that_were_replaced_at_once_few_are_compared_with_each_other():
    old, new = ("".join(f"{name}{number} = {number * number}\n" for number in range(60)) for name in ("first_", "b"))
    with patch.object(pairs, "template_sites", return_value=iter(())) as compared:
        assert ExampleDesk(a__py=old).replace((old, new)).offered() == []
    assert 0 < compared.call_count <= TEMPLATE_LINES * (TEMPLATE_LINES - 1) // 2


def test_a_line_is_not_inserted_where_it_stands():
    text = ROWS + ROWS.replace("a =", "b =") + ROWS.replace(*INSERTED)
    again = ("b = {\n" + INSERTED[0], "b = {\n" + INSERTED[1])
    assert ExampleDesk(a__py=text).replace(INSERTED, again).offered() == []


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


OFTEN = {
    "a text": ("f(old_name)\n", "f(new_name)\n"),
    "lines": ("start_all()\nstop_all()\n", "start_all()\nwait()\nstop_all()\n"),
}


@pytest.mark.parametrize(("old", "new"), OFTEN.values(), ids=OFTEN)
def test_of_many_places_in_another_document_the_first_are_looked_at(old: str, new: str):
    desk = ExampleDesk(a__py=f"{old}x = 1\n{old}", b__py="x = 1\n" + old * 10 * MAX_NEAR)
    desk.replace((old, new), (old, new))
    with patch.object(pairs, "_is_made", wraps=pairs._is_made) as seen:
        assert len(desk.offered(1, invoked=True)) == MAX_SITES
    assert seen.call_count == MAX_NEAR


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("now", ["other()\nend_all()", "open_all()\nend_all()"], ids=["replaced", "inserted"])
def test_lines_from_the_end_of_two_documents_get_a_break_before_others(now: str, end: str):
    was, now = "open_all()", now.replace("\n", end)
    desk = ExampleDesk(a__txt=f"start(){end}{was}", b__txt=f"start(){end}{was}", c__txt=f"start(){end}{was}{end}stop()")
    desk.replace((was, now)).replace((was, now), number=1)
    ((_, old, new),) = desk.offered(2)
    assert new.endswith(f"end_all(){end}") and old in ("", was + end)


def test_hunks_of_very_many_lines_are_not_compared():
    desk = ExampleDesk(a__txt="{\n}\n" * MAX_LINES)
    with patch.object(examples, "SequenceMatcher", wraps=SequenceMatcher) as compared:
        assert desk.replace(("{\n}\n" * MAX_LINES, "}\n{\n" * MAX_LINES)).offered() == []
    assert compared.call_count == 0


@pytest.mark.parametrize("reach", range(50, 80))
def test_the_searched_text_has_whole_lines(reach: int):
    text = "keep_old_line()\n{0}f(1)\nold_line()\na\nold_line()\n{0}old_line() + keep\n".format("#\n" * 20)
    desk = ExampleDesk(a__txt=text)
    desk.replace(("f(1)\nold_line()\n", "f(1)\nb()\nc()\n"), ("a\nold_line()\n", "a\nb()\nc()\n"))
    with patch.object(edit_sites, "SEARCH_REACH_CHARS", reach):
        assert desk.offered(invoked=True) == []


def test_lines_between_short_lines_are_not_inserted():
    text = "{\n}\n" * 3
    assert ExampleDesk(a__c=text).replace(("{\n}", "{\nf();\n}"), ("}\n{\n}", "}\n{\nf();\n}")).offered() == []


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


def test_the_rest_of_lines_that_are_begun_is_indented_like_their_first_one():
    lines = "if is_ready():\n    call_it()\nfinish_it()\n"
    text = "start()\n\nstop()\n\nif c:\n    end()\n\n"
    desk = ExampleDesk(a__py=text).replace(("start()\n", f"start()\n{lines}"), ("stop()\n", f"stop()\n{lines}"))
    desk.replace(("    end()\n", "    end()\n    if is_ready():\n        call\n"))
    assert desk.offered() == [(13, "", "_it()\n    finish_it()")]


# Never


def test_blanks_may_be_what_is_left_of_the_last_line_of_a_document():
    desk = ExampleDesk(a__py="if a:\n    old_name()\nif b:\n    old_name()")
    assert desk.replace(("old_name()", ""), ("old_name()", "")).offered() == []


def test_one_example_says_nothing():
    assert ExampleDesk(a__py="f(old_name)\ng(old_name)\n").replace(("f(old_name", "f(new_name")).offered() == []


def test_examples_before_the_latest_change_say_nothing():
    text = "f(old_name)\ng(old_name)\nh(old_name)\nx = 1\n"
    desk = ExampleDesk(a__py=text).replace(("f(old_name", "f(new_name"), ("g(old_name", "g(new_name"))
    assert desk.offered() and desk.replace(("x = 1", "x = 2")).offered() == []


def test_lines_that_changed_otherwise_are_no_examples():
    desk = ExampleDesk(a__js="var a;\nvar b;\nvar c;\n").replace(("var a", "let a"), ("var b", "const b"))
    assert desk.offered() == []


def test_other_documents_follow():
    desk = ExampleDesk(a__py="f(old_name)\ng(old_name)\n", b__py="h(old_name)\n").replace(("f(old_name", "f(new_name"))
    assert desk.offered(1) == []
    assert desk.replace(("g(old_name", "g(new_name")).offered(1) == [(0, "old_name", "new_name")]
