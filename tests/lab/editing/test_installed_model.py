"""What the 0.5B offers after two like changes, where it is installed; a scripted engine does in test_next_edits.py."""

from pathlib import Path

import pytest
from mercury_lab.editing.edit_desk import EditDesk
from mercury_lab.editing.line_edits import LineEdit, line_edit
from mercury_lab.editing.scenarios import Scenario

MODEL = Path.home() / ".local" / "share" / "mercury-lsp" / "models" / "qwen2.5-coder-0.5b"
"""The tests have a data folder of their own, so the model's name is not known in them."""

pytestmark = pytest.mark.skipif(not MODEL.is_dir(), reason="qwen2.5-coder-0.5b is not installed")

CALLS = """\
def load_user(session, base, name):
    return fetch(session, f"{base}/users/{name}")


def load_team(base, name, timeout):
    response = fetch(f"{base}/teams/{name}")
    return response.json()


def load_project(base, name, timeout):
    response = fetch(f"{base}/projects/{name}")
    return response.json()


def load_issue(base, name, timeout):
    response = fetch(f"{base}/issues/{name}")
    return response.json()
"""

SUM = """\
def total(items):
    result = 0
    for item in items:
        if item.price: result += item.price
        if item.tax: result += item.tax
        if item.fee: result += item.fee
    return result
"""

REQUIRES = """\
var path = require("path");
var fs = require("fs");
var url = require("url");

module.exports = { path, fs, url };
"""

TABLE = """\
<table>
  <tr><td>width = 10</td></tr>
  <tr><td>height = 20</td></tr>
  <tr><td>depth = 30</td></tr>
</table>
"""

CASES = {
    "var to const": (
        "config.js",
        REQUIRES,
        [("var path", "const path"), ("var fs", "const fs")],
        'const url = require("url");\n',
    ),
    "a mark": (
        "table.html",
        TABLE,
        [("width =", "width &lt;"), ("height =", "height &lt;")],
        "  <tr><td>depth &lt; 30</td></tr>\n",
    ),
    "an attribute": (
        "form.html",
        '<form>\n  <input name="first">\n  <input name="last">\n  <input name="mail">\n</form>\n',
        [('name="first"', 'name="first" required'), ('name="last"', 'name="last" required')],
        '  <input name="mail" required>\n',
    ),
    "an argument": (
        "client.py",
        CALLS,
        [('/teams/{name}")', '/teams/{name}", timeout)'), ('/projects/{name}")', '/projects/{name}", timeout)')],
        '    response = fetch(f"{base}/issues/{name}", timeout)\n',
    ),
}


def asked(path: str, text: str, changes: list[tuple[str, str]]) -> tuple[str, LineEdit | None]:
    """The text after the changes, and the edit that is offered behind the last one."""
    now, made, cursor = text, [], 0
    for old, new in changes:
        at = now.index(old)
        made.append(line_edit(path, now, at, at + len(old), new))
        now, cursor = now[:at] + new + now[at + len(old) :], at + len(new)
    scenario = Scenario("test", "test", "test", {path: text}, tuple(made), (path, cursor), ())
    with EditDesk({"model": str(MODEL), "threads": 1}) as desk:
        desk.work(scenario)
        return now, desk.ask(scenario, "unasked").edit


@pytest.mark.parametrize(("path", "text", "changes", "wanted"), CASES.values(), ids=CASES)
def test_the_third_of_three_is_offered(path, text, changes, wanted):
    now, edit = asked(path, text, changes)
    assert edit is not None
    after = edit.apply({path: now})[path]
    assert wanted in after.splitlines(keepends=True)
    assert sum(a != b for a, b in zip(now.splitlines(), after.splitlines(), strict=True)) == 1


def test_a_renamed_local_name_is_walked_to_its_last_use():
    changes = [("result = 0", "amount = 0")]
    for old in ("result += item.price", "result += item.tax", "result += item.fee", "return result"):
        now, edit = asked("sums.py", SUM, changes)
        assert edit is not None
        new = old.replace("result", "amount")
        assert edit.apply({"sums.py": now})["sums.py"] == now.replace(old, new)
        changes.append((old, new))
    assert asked("sums.py", SUM, changes)[1] is None
