"""A new parameter is stored as the one beside it is, and taken where its default was, and nowhere else."""

import pytest

from mercury_lsp.completion.next_edits.new_parameters import body_sites
from mercury_lsp.completion.next_edits.signatures import signatures
from tests.server.completion.test_by_example import ExampleDesk


def followed(desk: ExampleDesk) -> list[tuple[str, str]]:
    """The old and new texts of places in the body."""
    hunks, snapshot = desk.history.hunks(), desk.parsed()
    sites = [site for each in signatures(hunks, snapshot) for site in body_sites(each, hunks, snapshot)]
    assert all(snapshot.slice(site.start, site.end) == site.old for site in sites)
    return [(site.old, site.new) for site in sites]


PYTHON = """\
class Invites:
    def __init__(self, store, mailer):
        self.store = store
        self._mailer = mailer

    def send(self, store, mailer):
        mailer.send(store)
"""
SCRIPT = """\
class Page {
  constructor(id, title) {
    this.id = id;
    this.title = title;
  }
}
function make(id, title) {
  return {
    id: id,
    title: title,
  };
}
"""
LUA = """\
function Bag.new(slots)
  log(slots)
  call({ size = 1 }, slots == slots)
  return setmetatable({ slots = slots, items = {} }, Bag)
end
"""
RUST = """\
impl Bag {
    fn new(slots: u8) -> Self {
        Self {
            slots,
            items: vec![],
        }
    }
}
"""


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "sites"),
    [
        (
            "a__py",
            PYTHON,
            "__init__(self, store, mailer)",
            "__init__(self, store, mailer, clock)",
            [("", "        self._clock = clock\n")],
        ),
        (
            "a__py",
            PYTHON,
            "__init__(self, store, mailer)",
            "__init__(self, clock, store, mailer)",
            [("", "        self.clock = clock\n")],
        ),
        ("a__py", PYTHON, "send(self, store, mailer)", "send(self, store, mailer, clock)", []),
        (
            "a__py",
            PYTHON.replace("\n", "\r\n"),
            "__init__(self, store, mailer)",
            "__init__(self, store, mailer, clock)",
            [("", "        self._clock = clock\r\n")],
        ),
        (
            "a__ts",
            SCRIPT,
            "constructor(id, title)",
            "constructor(id, title, size)",
            [("", "    this.size = size;\n")],
        ),
        (
            "a__js",
            SCRIPT,
            "make(id, title)",
            "make(id, title, size)",
            [("", "    size: size,\n")],
        ),
        ("a__lua", LUA, "new(slots)", "new(slots, limit)", [("slots = slots", "slots = slots, limit = limit")]),
        ("a__rs", RUST, "new(slots: u8)", "new(slots: u8, limit: u8)", [("", "            limit,\n")]),
    ],
)
def test_a_new_parameter_is_stored_as_the_one_beside_it(name, text, old, new, sites):
    assert followed(ExampleDesk(**{name: text}).replace(old, new)) == sites


def test_the_new_line_stands_below_the_one_like_it_even_at_the_end_of_a_file():
    desk = ExampleDesk(a__py=PYTHON).replace("__init__(self, store, mailer)", "__init__(self, store, mailer, clock)")
    hunks, snapshot = desk.history.hunks(), desk.parsed()
    [site] = [site for each in signatures(hunks, snapshot) for site in body_sites(each, hunks, snapshot)]
    assert snapshot.text[: site.start].endswith("self._mailer = mailer\n")
    text = "class A:\n    def __init__(self, a):\n        self.a = a"
    assert followed(ExampleDesk(a__py=text).replace("self, a)", "self, a, b)")) == [
        ("self.a = a", "self.a = a\n        self.b = b")
    ]


def test_a_parameter_that_its_body_uses_already_needs_nothing():
    desk = ExampleDesk(a__py=PYTHON).replace("self._mailer = mailer", "self._mailer = mailer\n        use(clock)")
    assert followed(desk.replace("__init__(self, store, mailer)", "__init__(self, store, mailer, clock)")) == []


@pytest.mark.parametrize(
    ("new", "sites"),
    [
        ("check(form, fields = FIELDS)", [("FIELDS", "fields")]),
        ("check(form, fields = null)", []),
        ("check(form, fields)", []),
    ],
)
def test_a_parameter_is_taken_where_its_default_was(new: str, sites: list[tuple[str, str]]):
    code = (
        "function check(form) {\n  // FIELDS\n  for (const field of FIELDS) use(form.FIELDS, 'FIELDS', 'fields');\n}\n"
    )
    code += "use(FIELDS);\n"
    assert followed(ExampleDesk(a__js=code).replace("check(form)", new)) == sites
