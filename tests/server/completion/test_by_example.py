"""Changes of lines are made again in lines like them."""

from textwrap import dedent

import pytest
from lsprotocol import types

from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.mirroring import mirrored
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
        return self.documents.parsed(self.documents.uris[number])

    def replace(self, old: str, new: str) -> "ExampleDesk":
        snapshot = self.parsed()
        start = snapshot.text.index(old)
        span = (types.Position(*snapshot.position_at(at)) for at in (start, start + len(old)))
        change = types.TextDocumentContentChangePartial(types.Range(*span), new)
        self.history.record(snapshot.uri, self.documents.change(snapshot.uri, 2, [change]))
        return self

    def below(self, line: str, added: str) -> "ExampleDesk":
        """Add a line below another one."""
        return self.replace(line + "\n", f"{line}\n{added}\n")

    def mirrored(self, number: int = 0) -> list[str]:
        """The lines that follow the examples, as they would be."""
        found = [each for one in mirrored(self.history.hunks(), self.parsed(number)) for each in one.sites]
        return [_after(each.start, each.end, each.new, self.parsed(number)) for each in found]


def _after(start: int, end: int, new: str, snapshot: Snapshot) -> str:
    first, last = snapshot.source.line_bounds(start)[0], snapshot.source.line_bounds(end)[1]
    text = snapshot.slice(first, start) + new + snapshot.slice(end, last)
    return text.split("\n")[0].strip()


# The change of a line again

CALLS = """\
def a(when):
    stamp = when.strftime("%H").lower()
    return stamp

def b(day):
    print(day.strftime("%H").lower(), day)
    other = day.strftime("%d")
"""


def test_a_changed_expression_is_changed_elsewhere_with_other_names():
    desk = ExampleDesk(a__py=CALLS).replace('when.strftime("%H").lower()', "hour_of(when)")
    assert desk.mirrored() == ["print(hour_of(day), day)"]


def test_an_expression_is_whole_although_only_part_of_it_changed():
    desk = ExampleDesk(a__py="x = load(path, fast(1))\ny = f(load(path, fast(1)))\nz = load(path)\n")
    assert desk.replace("load(path, fast(1))", "read(path)").mirrored() == ["y = f(read(path))"]


def test_a_line_of_the_same_shape_gets_the_same_word():
    text = "class A:\n    int width() const { return width_; }\n    int height() const { return height_; }\n"
    desk = ExampleDesk(a__cpp=text).replace("width() const {", "width() const noexcept {")
    assert desk.mirrored() == ["int height() const noexcept { return height_; }"]


def test_what_was_changed_already_is_not_changed_twice():
    text = "a = get(x, fast)\nb = not get(y, fast)\nc = get(z, fast)\n"
    desk = ExampleDesk(a__py=text).replace("a = get(x, fast)", "a = not take(x)")
    desk.replace("b = not get(y, fast)", "b = not take(y)").replace("a = not take(x)", "a = take(x)")
    assert "b = not not take(y)" not in desk.mirrored()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("first = 1", "second = 1"),
        ("# about it", "# about that"),
        ("first = 1", "first = 1  # one"),
        ("first = 1", "first  =  1"),
    ],
    ids=["a name", "a comment", "a new comment", "white space"],
)
def test_names_comments_and_white_space_are_no_examples(old: str, new: str):
    text = "# about it\nfirst = 1\n# about it\nfirst = 1\n"
    assert ExampleDesk(a__py=text).replace(old, new).mirrored() == []


def test_a_number_is_followed_only_if_it_is_long():
    text = "port = 8080\nurl = f(8080)\nsize = 18080\n"
    assert ExampleDesk(a__py=text).replace("8080", "9090").mirrored() == ["url = f(9090)"]
    assert ExampleDesk(a__py="a = 10\nb = 10\n").replace("10", "20").mirrored() == []


def test_an_older_change_that_was_made_once_is_not_made_again():
    desk = ExampleDesk(a__py=CALLS).replace('when.strftime("%H").lower()', "hour_of(when)")
    assert desk.replace('strftime("%d")', 'strftime("%j")').mirrored() == []


def test_other_documents_follow_a_change_made_twice():
    other = 'def c(date):\n    return date.strftime("%H").lower()\n'
    desk = ExampleDesk(a__py=CALLS, b__py=other).replace('when.strftime("%H").lower()', "hour_of(when)")
    assert desk.mirrored(1) == []
    desk.replace('day.strftime("%H").lower()', "hour_of(day)")
    assert desk.mirrored(1) == ["return hour_of(date)"]


def test_a_function_is_not_made_asynchronous_because_another_one_was():
    text = "function load(a) {\n  return get(a);\n}\nfunction count(a) {\n  return get(a);\n}\n"
    assert ExampleDesk(a__js=text).replace("function load", "async function load").mirrored() == []
