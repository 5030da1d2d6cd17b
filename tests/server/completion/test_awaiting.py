"""What calls a function that became async awaits it and becomes async, where that is certain, and nowhere else."""

import pytest

from mercury_lsp.completion.next_edits.awaiting import awaiting_sites, made_async, unmarked
from tests.server.completion.test_by_example import ExampleDesk


def followed(desk: ExampleDesk, number: int = 0) -> list[str]:
    """The new texts of the functions that call those made async in the first document."""
    hunks, snapshot = desk.history.hunks(), desk.parsed(number)
    return [site.new for each in made_async(hunks, desk.parsed()) for site in awaiting_sites(each, hunks, snapshot)]


def marked(desk: ExampleDesk) -> list[str]:
    return [site.new for site in unmarked(desk.history.hunks(), desk.parsed())]


ROBOT = """\
class Robot:
    def wait(self):
        return self.port.readline()

    def move(self, x):
        self.port.write(x)
        answer = trim(self.wait(), f"{self.wait()}")
        if self.wait() and self.wait().strip():
            return self.wait()

    async def grip(self):
        await self.wait()
        self.wait()

    def schedule(self, pool):
        pool.submit(self.wait())
        self.pending = [self.wait()]
        later = lambda: self.wait()
        self.port.wait()

    def __init__(self):
        self.wait()

    @property
    def ready(self):
        return self.wait()


class Other:
    def run(self):
        self.wait()
        robot.wait()
"""


def test_methods_that_call_one_made_async_follow_it():
    assert followed(ExampleDesk(a__py=ROBOT).replace("def wait", "async def wait")) == [
        "async def move(self, x):\n        self.port.write(x)\n"
        '        answer = trim(await self.wait(), f"{await self.wait()}")\n'
        "        if await self.wait() and (await self.wait()).strip():\n            return await self",
        "await self",
        "async def run(self):\n        self.wait()\n        await robot",
    ]


SCRIPT = """\
function load(id) {
  return fetch(id);
}
function show(id) {
  const found = load(id);
  draw(load(id).title);
}
function handed(id) {
  load(id).then(draw);
  all([load(id)]);
  return load(id);
}
const page = (id) => {
  load(id);
};
ids.map((id) => {
  load(id);
});
test('shows', () => {
  load(1);
});
class Page {
  constructor(id) {
    load(id);
  }
  get title() {
    load(this.id);
  }
  open(id) {
    load(id);
    const late = () => load(id);
    page.load(id);
  }
}
"""


def test_promises_that_are_handed_on_are_not_awaited():
    assert followed(ExampleDesk(a__js=SCRIPT).replace("function load", "async function load")) == [
        "async function show(id) {\n  const found = await load(id);\n  draw((await load(id))",
        "async (id) => {\n  await load",
        "async () => {\n  await load",
        "async open(id) {\n    await load",
    ]


def test_a_return_type_becomes_a_promise():
    code = "class Rooms {\n  book(id: number): boolean {\n    return true;\n  }\n  move(id: number): Room {\n"
    code += "    this.book(id);\n    return room;\n  }\n}\n"
    assert followed(ExampleDesk(a__ts=code).replace("book(id: number)", "async book(id: number)")) == [
        "async move(id: number): Promise<Room> {\n    await this"
    ]


def test_rust_awaits_behind_the_call_of_a_receiver_named_like_the_trait():
    code = """\
    trait Source {
        fn get(&self, url: &str) -> Result<String, String>;
    }
    impl Reader {
        pub fn load(&self, url: &str) -> Result<String, String> {
            let text = self.source.get(url)?;
            self.map.get(url);
            Ok(text)
        }
    }
    """
    assert followed(ExampleDesk(a__rs=code).replace("fn get", "async fn get")) == [
        "async fn load(&self, url: &str) -> Result<String, String> {\n        let text = self.source.get(url).await"
    ]


@pytest.mark.parametrize(
    ("import_line", "calls"),
    [("from a import load\n", ["async def f():\n    await load"]), ("from b import save\n", [])],
)
def test_other_documents_follow_what_they_import(import_line: str, calls: list[str]):
    desk = ExampleDesk(a__py="def load():\n    return 1\n", b__py=f"{import_line}def f():\n    load()\n")
    assert followed(desk.replace("def load", "async def load"), 1) == calls


def test_nothing_follows_where_lines_were_changed_already_or_a_function_stays_as_it_was():
    text = "def load():\n    return 1\n\ndef f():\n    load()\n"
    desk = ExampleDesk(a__py=text).replace("def load", "async def load").replace("    load()", "    await load()")
    assert followed(desk) == []
    assert followed(ExampleDesk(a__py=text).replace("return 1", "return 2")) == []
    assert followed(ExampleDesk(a__py="async " + text).replace("load():", "load(x):")) == []
    assert followed(ExampleDesk(a__go="func load() {}\nfunc f() {\n\tload()\n}\n").replace("load()", "async()")) == []


@pytest.mark.parametrize(
    ("name", "text", "headers"),
    [
        ("a__py", "def f():\n    x = g()\n", ["async def"]),
        ("a__py", "async def f():\n    x = g()\n", []),
        ("a__py", "def f():\n    pass\n\nx = g()\n", []),
        ("a__ts", "function f(): number {\n  const x = g();\n}\n", ["async function f(): Promise<number>"]),
        ("a__js", "class A {\n  constructor() {\n    const x = g();\n  }\n}\n", []),
    ],
)
def test_a_function_that_awaits_becomes_async(name: str, text: str, headers: list[str]):
    assert marked(ExampleDesk(**{name: text}).replace("= g()", "= await g()")) == headers
