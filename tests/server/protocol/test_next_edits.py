"""The real server offers the last change in other places, as an edit and as an action."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tests.support.editor import COMMAND as SERVER
from tests.support.editor import Editor, place, script, span

EDIT = "textDocument/copilotInlineEdit"
COMMAND = "mercury.nextEdit"
TITLE = "Mercury: apply next edit"

ACTIONS = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor"]}}}},
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}, "configuration": True},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}
ANSWERS = {
    "workspace/applyEdit": lambda _: {"applied": True},
    "window/showDocument": lambda _: {"success": True},
    "workspace/configuration": lambda _: [None],
}

SILENT = {"confidence": 0.1}
"""No fill is worth showing, so next edits are offered."""

BODY = "def f(count):\n    x = count + 1\n    y = obj.count\n    return count\n"


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor(ANSWERS) as made:
        yield made.initialize(ACTIONS)


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


def renamed(editor: Editor, body: str = BODY, **fill: Any) -> str:
    """Open a document in which the first `count` has just become `total`; returns its uri."""
    uri = editor.opened(script(**(SILENT | fill)) + body)
    editor.change(uri, 2, {"range": span((1, 6), (1, 11)), "text": "total"})
    return uri


USED = "def count(x):\n    return x\n\n\nx = count(1)\ny = obj.count\nz = count(2)\n"
"""A function whose name has uses."""

UNUSED = USED.replace("= count(", "= other(")


def renamed_function(editor: Editor, body: str = USED, **fill: Any) -> str:
    """Open a document in which the first function `count` has just become `total`; returns its uri."""
    uri = editor.opened(script(**(SILENT | fill)) + body)
    editor.change(uri, 2, {"range": span((1, 4), (1, 9)), "text": "total"})
    return uri


def edits(editor: Editor, uri: str, version: int = 2, line: int = 1, column: int = 11) -> list[dict[str, Any]]:
    return editor.result(ask(editor, uri, version, line, column))["edits"]


def ask(editor: Editor, uri: str, version: int = 2, line: int = 1, column: int = 11) -> int:
    where = place(uri, line, column) | {"textDocument": {"uri": uri, "version": version}}
    return editor.ask(EDIT, where | {"context": {"triggerKind": 2}})


CURSOR = span((1, 11), (1, 11))


def titles(editor: Editor, uri: str, where: dict[str, Any] = CURSOR, **context: Any) -> list[str]:
    params = {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": []} | context}
    return [each["title"] for each in editor.request("textDocument/codeAction", params)]


def run(editor: Editor, uri: str, version: int | None = None) -> int:
    document = {"uri": uri} | ({} if version is None else {"version": version})
    return editor.ask("workspace/executeCommand", {"command": COMMAND, "arguments": [{"textDocument": document}]})


def run_all(editor: Editor, uri: str, version: int | None = None) -> int:
    document = {"uri": uri} | ({} if version is None else {"version": version})
    return editor.ask(
        "workspace/executeCommand", {"command": "mercury.applyAllEdits", "arguments": [{"textDocument": document}]}
    )


def command_of(command: dict[str, Any]) -> dict[str, Any]:
    return {"command": command["command"], "arguments": command["arguments"]}


# As an edit


def test_the_last_change_is_offered_for_the_next_place(editor: Editor):
    uri = renamed(editor)
    [edit] = edits(editor, uri)
    assert (edit["text"], edit["range"]) == ("total", span((2, 8), (2, 13)))
    assert edit["textDocument"] == {"uri": uri, "version": 2}
    assert edit["command"]["command"] == "mercury.accepted"


def test_a_fill_worth_showing_comes_before_the_next_edit(editor: Editor):
    uri = renamed(editor, confidence=0.9)
    [edit] = edits(editor, uri)
    assert edit["text"] == "suggested"


def test_before_words_of_the_line_no_fill_comes_before_the_next_edit(editor: Editor):
    uri = renamed(editor, BODY.replace("count):", "count, other):"), confidence=0.9)
    [edit] = edits(editor, uri)
    assert (edit["text"], edit["range"]) == ("total", span((2, 8), (2, 13)))


def test_a_client_with_ghost_text_may_ask_for_next_edits_alone(editor: Editor):
    uri = renamed(editor, confidence=0.9)
    where = place(uri, 1, 11) | {"textDocument": {"uri": uri, "version": 2}}
    [edit] = editor.request(EDIT, where | {"mercury": {"fills": False}})["edits"]
    assert (edit["text"], edit["range"]) == ("total", span((2, 8), (2, 13)))
    assert edits(editor, uri)[0]["text"] == "suggested"


def test_accepting_leads_from_place_to_place_until_none_is_left(editor: Editor):
    uri, version, taken = renamed(editor), 2, []
    while found := edits(editor, uri, version):
        [edit], version = found, version + 1
        taken.append(edit["range"]["start"]["line"])
        editor.notify("workspace/executeCommand", edit["command"])
        editor.change(uri, version, {"range": edit["range"], "text": edit["text"]})
    assert taken == [2, 4]
    assert editor.text(uri).endswith(BODY.replace("count", "total").replace("obj.total", "obj.count"))


def test_a_renaming_begun_at_a_use_goes_on_unasked_after_the_second_place(editor: Editor):
    uri = editor.opened(script(**SILENT) + "def f(count):\n    a = count\n    b = count\n    return count\n")
    editor.change(uri, 2, {"range": span((2, 8), (2, 13)), "text": "total"})
    assert edits(editor, uri, 2, 2, 13) == []
    assert "count was changed where it is only used; by key its 3 other places follow" in explained(editor)
    editor.change(uri, 3, {"range": span((1, 6), (1, 11)), "text": "total"})
    [edit] = edits(editor, uri, 3, 1, 11)
    assert edit["range"] == span((3, 8), (3, 13))


def test_a_renaming_goes_on_after_a_blank_line_elsewhere_and_all_of_it_can_be_made(editor: Editor):
    uri = renamed(editor)
    editor.change(uri, 3, {"range": span((3, 0), (3, 0)), "text": "\n"})
    [edit] = edits(editor, uri, 3, 4, 0)
    assert (edit["text"], edit["range"]) == ("total", span((2, 8), (2, 13)))
    assert titles(editor, uri) == [TITLE, "Rename all 2 remaining count to total", "Mercury: fill here"]
    assert editor.result(run_all(editor, uri)) == {"applied": True, "edits": 2, "documents": 1, "remaining": 0}


MEMBERS = """\
class Box:
    def __init__(self):
        self.entries = []

    def add(self, entry):
        self.entries = self.entries + [entry]

    def count(self):
        return len(self.entries)

    def clear(self):
        self.entries.clear()
"""


def walked(editor: Editor, uri: str, version: int, line: int, column: int) -> list[dict[str, Any]]:
    """The edits that are offered one after the other, each accepted with the cursor behind it."""
    taken = []
    while found := edits(editor, uri, version, line, column):
        [edit], version = found, version + 1
        taken.append(edit["range"])
        editor.notify("workspace/executeCommand", edit["command"])
        editor.change(uri, version, {"range": edit["range"], "text": edit["text"]})
        lines = edit["text"].split("\n")
        line = edit["range"]["start"]["line"] + len(lines) - 1
        column = len(lines[-1]) + (edit["range"]["start"]["character"] if len(lines) == 1 else 0)
    return taken


def test_a_member_changed_where_it_is_first_assigned_is_walked_to_the_end(editor: Editor):
    uri = editor.opened(script(**SILENT) + MEMBERS)
    editor.change(uri, 2, {"range": span((3, 13), (3, 20)), "text": "numbers"})
    taken = walked(editor, uri, 2, 3, 20)
    assert taken == [span((6, 13), (6, 35)), span((9, 24), (9, 31)), span((12, 13), (12, 20))]
    assert editor.text(uri).endswith(MEMBERS.replace("entries", "numbers"))


def test_a_member_changed_in_two_other_places_is_walked_to_the_end(editor: Editor):
    uri = editor.opened(script(**SILENT) + MEMBERS)
    editor.change(uri, 2, {"range": span((9, 24), (9, 31)), "text": "numbers"})
    assert edits(editor, uri, 2, 9, 31) == []
    editor.change(uri, 3, {"range": span((6, 13), (6, 20)), "text": "numbers"})
    taken = walked(editor, uri, 3, 6, 20)
    assert taken == [span((6, 28), (6, 35)), span((12, 13), (12, 20)), span((3, 13), (3, 20))]


COUNTER = """\
class Counter:
    def __init__(self):
        self.entries = {}

    def add(self, word):
        if word in self.entries:
            self.entries[word] += 1
        else:
            self.entries[word] = 1

    def of(self, word):
        return self.entries.get(word, 0)

    def total(self):
        return sum(self.entries.values())

    def most_common(self):
        return sorted(self.entries, key=self.entries.get)
"""


def test_a_member_typed_key_by_key_is_walked_to_the_end_after_a_typo_taken_back(editor: Editor):
    uri, version = editor.opened(script(**SILENT) + COUNTER), 1
    for number, key in enumerate("counts"):
        replaced = 7 if number == 0 else 0
        where = span((3, 13 + number), (3, 13 + number + replaced))
        version += 1
        editor.change(uri, version, {"range": where, "text": key})
        edits(editor, uri, version, 3, 14 + number)
    for where, text in ((span((3, 24), (3, 24)), "x"), (span((3, 24), (3, 25)), "")):
        version += 1
        editor.change(uri, version, {"range": where, "text": text})
        edits(editor, uri, version, 3, 24 + len(text))
    assert len(walked(editor, uri, version, 3, 19)) == 6
    assert editor.text(uri).endswith(COUNTER.replace("entries", "counts"))


def test_a_dismissed_place_is_not_offered_again_for_this_change(editor: Editor):
    uri = renamed(editor)
    [edit] = edits(editor, uri)
    assert edits(editor, uri)[0]["range"] == edit["range"]  # asked again, it is still there
    [edit] = edits(editor, uri)
    editor.request("notifyRejected", {"uuids": edit["command"]["arguments"]})
    [other] = edits(editor, uri)
    assert other["range"] == span((4, 11), (4, 16))


def test_an_edit_that_was_accepted_and_undone_is_not_offered_again(editor: Editor):
    uri = renamed(editor)
    [edit] = edits(editor, uri)
    editor.change(uri, 3, {"range": edit["range"], "text": "total"})
    editor.change(uri, 4, {"range": edit["range"], "text": "count"})
    assert edits(editor, uri, 4) == []


# A renaming as a whole


def test_an_offer_says_how_far_its_renaming_is_and_how_to_finish_it(editor: Editor):
    uri = renamed(editor)
    [edit] = edits(editor, uri)
    told = edit["mercury"]
    assert (told["label"], told["remaining"], told["total"]) == ("rename count to total (2 of 3)", 2, 3)
    assert editor.request("workspace/executeCommand", command_of(told["applyAll"]))["applied"]
    [applied] = editor.received("workspace/applyEdit")
    [changed] = applied["edit"]["documentChanges"]
    assert changed["textDocument"] == {"uri": uri, "version": 2}
    assert [each["range"] for each in changed["edits"]] == [span((2, 8), (2, 13)), span((4, 11), (4, 16))]


def test_all_remaining_places_are_renamed_at_once(editor: Editor):
    uri = renamed_function(editor)
    assert editor.result(run_all(editor, uri)) == {"applied": True, "edits": 2, "documents": 1, "remaining": 0}


@contextmanager
def project(folder: Path, experimental: dict[str, Any]) -> Iterator[tuple[Editor, str, str]]:
    """An editor with two files of a workspace, and their uris; in the first one two lines have just been changed."""
    texts = {"tools.py": "f(x.strict)\ng(x.strict)\n", "user.py": "h(y.strict)\n\nk(z.strict)\n"}
    uris = [(folder / name).as_uri() for name in texts]
    with Editor(ANSWERS) as editor:
        capabilities = ACTIONS | {"experimental": {"mercury": experimental}}
        editor.initialize(capabilities, workspaceFolders=[{"uri": folder.as_uri(), "name": "x"}])
        for uri, text in zip(uris, texts.values(), strict=True):
            editor.open(uri, script(**SILENT) + text)
        for line in (1, 2):
            editor.change(uris[0], line + 1, {"range": span((line, 4), (line, 10)), "text": "loose"})
        for _ in range(200):  # until the settings have arrived
            if TITLE in titles(editor, uris[0]):
                break
            sleep(0.02)
        yield editor, *uris


def test_what_was_done_twice_is_offered_in_another_document_to_editors_that_show_it_there(tmp_path: Path):
    with project(tmp_path, {"editsElsewhere": True}) as (editor, tools, user):
        [edit] = edits(editor, tools, 3, 2, 9)
        assert edit["textDocument"] == {"uri": user, "version": 1}
        assert (edit["range"], edit["text"]) == (span((1, 4), (1, 10)), "loose")
        [edit] = edits(editor, user, 1, 2, 0)  # the user has gone there before taking it
        assert (edit["textDocument"], edit["range"]) == ({"uri": user, "version": 1}, span((1, 4), (1, 10)))
        editor.change(user, 2, {"range": edit["range"], "text": "loose"})
        [edit] = edits(editor, user, 2, 1, 9)
        assert (edit["textDocument"]["uri"], edit["range"]) == (user, span((3, 4), (3, 10)))


def test_an_edit_says_who_proposed_it_to_editors_that_declare_it(tmp_path: Path):
    with project(tmp_path / "with", {"editsElsewhere": True, "source": True}) as (editor, tools, _):
        [edit] = edits(editor, tools, 3, 2, 9)
        assert edit["mercury"]["source"] == "rule"
    with project(tmp_path / "without", {"editsElsewhere": True}) as (editor, tools, _):
        [edit] = edits(editor, tools, 3, 2, 9)
        assert "mercury" not in edit


def test_editors_that_show_no_other_document_get_its_edit_by_key_only(tmp_path: Path):
    with project(tmp_path, {}) as (editor, tools, user):
        assert edits(editor, tools, 3, 2, 9) == []
        assert editor.result(run(editor, tools)) == {"applied": True}
        *_, applied = editor.received("workspace/applyEdit")
        [changed] = applied["edit"]["documentChanges"]
        assert changed["textDocument"] == {"uri": user, "version": 1}


def test_a_place_that_looks_like_a_secret_stays_and_the_user_is_told(editor: Editor):
    secret = '    password = "hunter2-Zq8!kPx" + count\n'
    uri = renamed(editor, "def f(count):\n" + secret + "    x = count\n    return count\n")
    assert editor.result(run_all(editor, uri)) == {"applied": True, "edits": 2, "documents": 1, "remaining": 1}
    assert "look like secrets" in editor.received("window/showMessage")[0]["message"]


def test_without_a_renaming_or_for_an_older_version_nothing_is_renamed(editor: Editor):
    assert editor.result(run_all(editor, editor.opened(BODY))) == {"applied": False}
    assert editor.result(run_all(editor, renamed(editor), 1)) == {"applied": False}
    messages = [each["message"] for each in editor.received("window/showMessage")]
    assert "no renaming" in messages[0] and "changed" in messages[1]
    assert editor.received("workspace/applyEdit") == []


# Silence


def test_next_edits_can_be_switched_off():
    with Editor(ANSWERS) as editor:
        editor.initialize(ACTIONS, {"nextEdits": False})
        uri = renamed(editor)
        assert edits(editor, uri) == []
        assert titles(editor, uri) == ["Mercury: fill here"]


def explained(editor: Editor) -> str:
    asked = {"command": "mercury.explain", "arguments": []}
    return "; ".join(editor.request("workspace/executeCommand", asked))


def test_silence_is_explained_by_a_command(editor: Editor):
    uri = editor.opened(script(**SILENT) + "x = 1\n")
    editor.change(uri, 2, {"range": span((1, 4), (1, 5)), "text": "2"})
    assert edits(editor, uri, column=5) == []
    assert "the model in use rewrites no regions" in explained(editor)
    assert "no regions" in editor.received("window/showMessage")[0]["message"]


def test_lines_inserted_twice_and_begun_again_are_finished_by_ghost_text(editor: Editor):
    uri = editor.opened(script(**SILENT) + "start()\n\nstop()\n\nend()\n")
    for version, (line, text) in enumerate([(2, "log.info('done')\n"), (5, "log.info('done')\n"), (8, "log.i\n")], 2):
        editor.change(uri, version, {"range": span((line, 0), (line, 0)), "text": text})
    [item] = editor.result(editor.inline(uri, 8, 5))["items"]
    assert item["insertText"] == "nfo('done')"
    editor.change(uri, 5, {"range": span((8, 5), (8, 5)), "text": item["insertText"]})
    editor.change(uri, 6, {"range": span((8, 5), (8, 16)), "text": ""})
    assert editor.items(uri, 8, 5) == [], "the user has taken it back"


# The model's rewrite of the region at hand


@pytest.fixture(scope="module")
def rewriting() -> Iterator[Editor]:
    with Editor(ANSWERS, [*SERVER, "--rewrites"]) as made:
        yield made.initialize(ACTIONS)


SHAPES = {
    "var to const": ("javascript", "var a = 1;\nvar b = 2;\nvar c = 3;\n", ("var", "const")),
    "a mark": ("html", "<p>a = 1</p>\n<p>b = 2</p>\n<p>c = 3</p>\n", (" = ", " &lt; ")),
    "an attribute": ("html", '<i id="a">1</i>\n<i id="b">2</i>\n<i id="c">3</i>\n', ("<i id", '<i class="x" id')),
    "an argument": ("python", "a = fetch(url)\nb = fetch(url)\nc = fetch(url)\n", ("(url)", "(url, timeout)")),
}


@pytest.mark.parametrize(("language", "text", "change"), SHAPES.values(), ids=SHAPES)
def test_what_two_lines_got_the_third_gets_from_rule_or_region(rewriting: Editor, language, text, change):
    rewriting.quiet()
    uri = rewriting.opened(script(**SILENT, rewrites=[change]) + text, language=language)
    old, new = change
    lines = text.splitlines()
    for number in (0, 1):
        column = lines[number].index(old)
        where = span((number + 1, column), (number + 1, column + len(old)))
        rewriting.change(uri, number + 2, {"range": where, "text": new})
    [edit] = edits(rewriting, uri, 3, 2, lines[1].index(old) + len(new))
    assert edit["range"]["start"]["line"] == 3
    applied = rewriting.text(uri).splitlines()[3]
    start, end = (edit["range"][side]["character"] for side in ("start", "end"))
    shown = edit["text"].rstrip("\n")
    assert lines[2].replace(old, new) in (shown, applied[:start] + shown + applied[end:])


# An edit that only inserts at the cursor


def asked_alone(editor: Editor, uri: str, version: int, line: int, column: int) -> list[dict[str, Any]]:
    """The edits shown to a client that asks for ghost text, too."""
    where = place(uri, line, column) | {"textDocument": {"uri": uri, "version": version}}
    return editor.request(EDIT, where | {"mercury": {"fills": False}})["edits"]


def begun_in_one_line(editor: Editor, new: str = "y = a + 1", **fill: Any) -> str:
    """Open a document in which the first of two lines has just got ` + 1`, and a model makes `new` of the second."""
    uri = editor.quiet().opened(script(**SILENT, **fill, rewrites=[("y = a", new)]) + "x = a\ny = a\n\nz = 1\n")
    editor.change(uri, 2, {"range": span((1, 5), (1, 5)), "text": " + 1"})
    return uri


def test_what_the_model_only_inserts_at_the_cursor_is_ghost_text_and_no_edit(rewriting: Editor):
    uri = begun_in_one_line(rewriting)
    [item] = rewriting.items(uri, 2, 5)
    assert (item["insertText"], item["range"]) == (" + 1", span((2, 5), (2, 5)))
    assert asked_alone(rewriting, uri, 2, 2, 5) == []


def test_ghost_text_and_edit_asked_together_show_an_insertion_once(rewriting: Editor):
    uri = begun_in_one_line(rewriting)
    ghost, edit = rewriting.inline(uri, 2, 5), ask(rewriting, uri, 2, 2, 5)
    assert [each["insertText"] for each in rewriting.result(ghost)["items"]] == [" + 1"]
    assert rewriting.result(edit)["edits"] == []


# As an action


def test_the_action_is_listed_where_a_place_is_left_and_listing_asks_no_model(editor: Editor):
    uri = renamed(editor, error="the model was asked")
    assert titles(editor, uri) == [TITLE, "Rename all 2 remaining count to total", "Mercury: fill here"]
    assert titles(editor, editor.opened(BODY)) == ["Mercury: fill here"]
    assert editor.received("window/showMessage") == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ((span((2, 8), (2, 9)), "2"), "x = 1\ny = 1\n"),
        ((span((1, 4), (1, 9)), "class"), "count = 1\nx = count\n"),
        ((span((1, 0), (1, 5)), "total"), 'count = 1\npassword = "hunter2-Zq8!kPx" + count\n'),
    ],
    ids=["nothing to repeat", "broken syntax", "a secret"],
)
def test_the_action_is_never_listed_without_an_edit(editor: Editor, change: tuple[dict[str, Any], str], text: str):
    uri = editor.opened(script(**SILENT) + text)
    where, new = change
    editor.change(uri, 2, {"range": where, "text": new})
    assert TITLE not in titles(editor, uri) and TITLE not in titles(editor, uri, triggerKind=1)
    assert editor.result(run(editor, uri)) == {"applied": False}


def test_an_edit_of_the_models_is_listed_when_the_user_asks_for_the_list(rewriting: Editor):
    uri = rewriting.quiet().opened(script(**SILENT, rewrites=[("one", "two")]) + 'x = "one"\nf("one")\n')
    rewriting.change(uri, 2, {"range": span((1, 5), (1, 8)), "text": "two"})
    assert TITLE not in titles(rewriting, uri, triggerKind=2)
    assert TITLE in titles(rewriting, uri, triggerKind=1)
    assert rewriting.result(run(rewriting, uri)) == {"applied": True}


def test_the_action_is_listed_for_a_range_too_as_eglot_asks_for_the_expression_at_point(editor: Editor):
    uri = renamed(editor)
    assert titles(editor, uri, span((1, 0), (2, 17))) == [TITLE, "Rename all 2 remaining count to total"]


def test_the_action_applies_the_edit_and_the_cursor_goes_behind_it(editor: Editor):
    uri = renamed(editor)
    assert editor.result(run(editor, uri, 2)) == {"applied": True}
    [applied] = editor.received("workspace/applyEdit")
    [changed] = applied["edit"]["documentChanges"]
    assert changed["textDocument"] == {"uri": uri, "version": 2}
    assert changed["edits"] == [{"range": span((2, 8), (2, 13)), "newText": "total"}]
    [shown] = editor.received("window/showDocument")
    assert shown["selection"] == span((2, 13), (2, 13))


def test_the_command_says_so_when_the_document_has_changed_meanwhile(editor: Editor):
    uri = renamed(editor)
    chosen = run(editor, uri, 2)
    editor.change(uri, 3, {"range": span((1, 0), (1, 0)), "text": "\n"})
    assert editor.result(chosen) == {"applied": False}
    assert "changed" in editor.received("window/showMessage")[0]["message"]


def test_a_file_that_is_still_being_parsed_is_distinguished_from_one_without_a_next_edit():
    with Editor(ANSWERS, [*SERVER, "--parses-once"]) as editor:
        editor.initialize(ACTIONS)
        uri = renamed(editor)
        assert edits(editor, uri) == [] and titles(editor, uri) == ["Mercury: fill here"]
        assert editor.result(run(editor, uri, 2)) == {"applied": False}
        assert "still being read" in editor.received("window/showMessage")[0]["message"]


def test_the_command_is_announced_to_clients_that_apply_edits():
    for capabilities, is_announced in ((ACTIONS, True), ({}, False)):
        with Editor(ANSWERS) as editor:
            offered = editor.initialize(capabilities).capabilities["executeCommandProvider"]["commands"]
            assert (COMMAND in offered) is is_announced


FAR = "\n".join(f"    a{n} = {n}" for n in range(40))
"""Lines of a body, in which line 30 of the document is `    a25 = 25`."""


@pytest.fixture(scope="module")
def placing() -> Iterator[Editor]:
    with Editor(ANSWERS, [*SERVER, "--place", "30"]) as made:
        yield made.initialize(ACTIONS)


def test_by_key_the_user_is_taken_to_a_likely_place_if_no_edit_is_known(placing: Editor):
    uri = renamed_function(placing.quiet(), UNUSED + f"def g():\n{FAR}\n")
    assert placing.result(run(placing, uri, 2)) == {"applied": False}
    [shown] = placing.received("window/showDocument")
    assert (shown["uri"], shown["selection"]) == (uri, span((30, 4), (30, 4)))
    assert "one is likely here" in placing.received("window/showMessage")[0]["message"]


@pytest.mark.parametrize(("uri", "where"), [("file:///a.py", "at line 31 of a.py"), ("untitled:a", "at line 31")])
def test_an_editor_that_shows_no_documents_is_told_the_line(uri: str, where: str):
    with Editor(ANSWERS, [*SERVER, "--place", "30"]) as editor:
        editor.initialize({"workspace": {"applyEdit": True}})
        editor.open(uri, script(**SILENT) + UNUSED + f"def g():\n{FAR}\n")
        editor.change(uri, 2, {"range": span((1, 4), (1, 9)), "text": "total"})
        assert editor.result(run(editor, uri, 2)) == {"applied": False}
        assert editor.received("window/showMessage")[0]["message"].endswith(where)
