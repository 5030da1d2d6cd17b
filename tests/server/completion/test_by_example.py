"""Changes of lines are made again in lines like them, and items are added wherever those beside them are listed."""

from textwrap import dedent

import pytest
from lsprotocol import types

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import History
from mercury_lsp.completion.next_edits.mirroring import mirrored
from mercury_lsp.completion.next_edits.offers_by_example import OffersByExample
from mercury_lsp.completion.next_edits.siblings import additions, sibling_sites
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.document import Edit, Snapshot
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

    def added(self, number: int = 0) -> list[str]:
        """The lines that would be new or longer."""
        hunks, snapshot = self.history.hunks(), self.parsed(number)
        found = [site for each in additions(hunks, self.parsed()) for site in sibling_sites(each, hunks, snapshot)]
        unique = {site.start: site for site in found}.values()
        return [_after(each.start, each.end, each.new, snapshot) for each in unique]


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


def test_a_dismissed_change_is_dismissed_in_its_document():
    desk = ExampleDesk(a__py=CALLS).replace('when.strftime("%H").lower()', "hour_of(when)")
    [found] = mirrored(desk.history.hunks(), desk.parsed())
    offers = OffersByExample()
    offers.offer("1", "file:///a.py", found.sites[0])
    offers.dismiss("1")
    assert offers.is_declined("file:///a.py", found.sites[0])
    assert not offers.is_declined("file:///b.py", found.sites[0])


def test_a_change_that_was_taken_and_taken_back_is_declined_at_its_place_only():
    offers, uri, site, other = (
        OffersByExample(),
        "file:///a.py",
        EditSite(50, "old", "newer"),
        EditSite(90, "old", "newer"),
    )
    offers.offer("1", uri, site)
    offers.edited(uri, [Edit(50, "old", "newer"), Edit(50, "newer", "old"), Edit(10, "", "four")])
    assert offers.is_declined(uri, EditSite(54, "old", "newer"))
    assert not offers.is_declined(uri, other)
    offers.offer("2", uri, EditSite(20, "", "x\n"))
    offers.edited(uri, [Edit(20, "", "x\n"), Edit(20, "x\n", "")])
    assert offers.is_declined(uri, EditSite(20, "", "x\n"))


def test_a_function_is_not_made_asynchronous_because_another_one_was():
    text = "function load(a) {\n  return get(a);\n}\nfunction count(a) {\n  return get(a);\n}\n"
    assert ExampleDesk(a__js=text).replace("function load", "async function load").mirrored() == []


# An item beside another one

LAMP = """\
public class Lamp {
    private final String room;
    private final int watts;

    public Lamp(String room, int watts) {
        this.room = room;
        this.watts = watts;
        connect(room, watts, 5);
    }

    public String toString() {
        return join(
            "room", room,
            "watts", watts);
    }
}
"""


def test_a_new_field_is_assigned_below_the_one_beside_it():
    desk = ExampleDesk(a__java=LAMP).below("    private final int watts;", "    private final Color color;")
    assert desk.added() == ["this.color = color;"]


def test_a_new_name_joins_lists_of_its_siblings():
    text = """\
    const sizes = {
      small: load("small"),
      large: load("large"),
    };
    const order = ["small", "large"];
    const pair = ["large", 3];
    draw(small, large);
    """
    desk = ExampleDesk(a__js=text).below('  large: load("large"),', '  giant: load("giant"),')
    assert desk.added() == ['const order = ["small", "large", "giant"];']


def test_a_field_of_a_literal_takes_the_parameter_of_its_name():
    text = """\
    interface Job {
      name: string;
      tries: number;
    }
    function job(name: string): Job {
      return { name, tries: 0 };
    }
    function other(name: string): Job {
      return { name, tries: 0 };
    }
    """
    desk = ExampleDesk(a__ts=text).below("  tries: number;", "  delay: number;")
    assert desk.added() == []
    desk.replace("job(name: string)", "job(name: string, delay: number)")
    assert desk.added() == ["return { name, tries: 0, delay };"]


def test_other_documents_get_the_item_too():
    header = "struct pump {\n    size_t strokes;\n    size_t litres;\n};\n"
    code = "void reset(struct pump *p)\n{\n    p->strokes = 0;\n    p->litres = 0;\n    p->rate = 50;\n}\n"
    desk = ExampleDesk(pump__h=header, pump__c=code).below("    size_t litres;", "    size_t faults;")
    assert desk.added(1) == ["p->faults = 0;"]


def test_an_item_that_is_there_already_and_values_of_their_own_are_left_alone():
    text = (
        "class A:\n    def f(self, a1):\n        self.first = a1\n        self.third = 3\n\nx.first = 7\nx.third = 8\n"
    )
    desk = ExampleDesk(a__py=text).below("        self.first = a1", "        self.second = a1")
    assert desk.added() == []
