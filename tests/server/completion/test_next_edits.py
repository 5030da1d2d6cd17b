"""What the last change was, and where else it may be made by rules alone."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from mercury_lsp.completion.next_edits.calls import call_around, calls, changed_alike
from mercury_lsp.completion.next_edits.change import MAX_CHANGE_CHARS, Change, differing, extended_change
from mercury_lsp.completion.next_edits.judging import probability_of_new, scoring_request
from mercury_lsp.completion.next_edits.repeatable_edits import MAX_OFFERED_SITES, RepeatableEdits
from mercury_lsp.documents import document as module
from mercury_lsp.documents.document import Document, Edit


class Desk:
    """A user at a document."""

    def __init__(self, text: str, language: str = "python"):
        self.document = Document("file:///a", language, 1, dedent(text))
        self.repeatable = RepeatableEdits()

    @property
    def text(self) -> str:
        return self.document.parsed().text

    def find(self, text: str, number: int = 0) -> int:
        at = -1
        for _ in range(number + 1):
            at = self.text.index(text, at + 1)
        return at

    def put(self, start: int, removed: str, inserted: str) -> None:
        snapshot = self.document.parsed()
        start, end = (types.Position(*snapshot.position_at(at)) for at in (start, start + len(removed)))
        change = types.TextDocumentContentChangePartial(types.Range(start, end), inserted)
        self.repeatable.record(self.document.apply([change], 1))

    def replace(self, old: str, new: str, number: int = 0) -> "Desk":
        self.put(self.find(old, number), old, new)
        return self

    def type(self, at: int, text: str) -> "Desk":
        for number, key in enumerate(text):
            self.put(at + number, "", key)
        return self

    def erase(self, start: int, count: int) -> "Desk":
        for end in range(start + count, start, -1):
            self.put(end - 1, self.text[end - 1], "")
        return self

    def change(self) -> tuple[str, str] | None:
        found = self.repeatable.replacement(self.document.parsed())
        return (found.old, found.new) if found else None

    def lines(self, invoked: bool = False) -> list[int]:
        """The numbers of the lines where the change may be made."""
        snapshot = self.document.parsed()
        found = self.repeatable.replacement(snapshot)
        return (
            [snapshot.position_at(each.start)[0] for each in self.repeatable.sites(found, snapshot, invoked)]
            if found
            else []
        )

    def is_unfinished(self, cursor: int) -> bool:
        found = self.repeatable.replacement(self.document.parsed())
        return found is None or self.repeatable.is_unfinished(found, cursor)

    def texts(self, invoked: bool = False) -> list[tuple[str, str]]:
        snapshot = self.document.parsed()
        found = self.repeatable.replacement(snapshot)
        return [(each.old, each.new) for each in self.repeatable.sites(found, snapshot, invoked)] if found else []


RENAMED = """\
    def f(count):
        x = count + 1
        return count

    def g(count):
        return count
"""


# The change


def test_keys_that_touch_are_one_change():
    desk = Desk(RENAMED)
    desk.erase(desk.find("count"), 5).type(6, "total")
    assert desk.change() == ("count", "total")


@pytest.mark.parametrize("new", ["total", "c", "counts"])
def test_who_types_over_a_selected_name_changes_all_of_it_whatever_letters_both_share(new):
    desk = Desk(RENAMED).replace("count", new[0])
    assert desk.type(7, new[1:]).change() == ("count", new)


def test_keys_in_the_middle_of_a_word_change_the_whole_word():
    assert Desk("count = 1\n").type(3, "xy").change() == ("count", "couxynt")
    desk = Desk("counter = 1\n")
    assert desk.erase(5, 2).change() == ("counter", "count")


def test_an_edit_elsewhere_begins_another_change():
    desk = Desk(RENAMED).replace("count", "total").replace("x = ", "xs = ")
    assert desk.change() == ("x", "xs")


@pytest.mark.parametrize(
    ("text", "at", "typed", "change"),
    [
        ("f(x)\n", 2, "self.", ("x", "self.x")),
        ("a = fetch(x)\n", 4, "await ", ("fetch", "await fetch")),
        ("f(x)\n", 3, ".strip()", ("x", "x.strip()")),
        ("load(path)\n", 9, ", encoding", ("load(path)", "load(path, encoding)")),
        ("load(path)\n", 5, "root, ", ("load(path)", "load(root, path)")),
    ],
)
def test_what_only_came_in_belongs_to_a_word_or_a_call(text, at, typed, change):
    assert Desk(text).type(at, typed).change() == change


def test_what_both_texts_have_in_common_is_no_part_of_the_change():
    desk = Desk("load(path, mode)\n").replace("load(path, mode)", "load(name, mode)")
    assert desk.change() == ("path", "name")


@pytest.mark.parametrize(
    ("old", "new"), [("x = 1", "x = 2"), ("1\n", "1\ny = 2\n"), ("= 1", "== 1"), ("1", "1" * 100), ("x = 1\n", "")]
)
def test_numbers_signs_lines_and_long_texts_are_not_repeated(old, new):
    assert Desk("x = 1\n").replace(old, new).change() is None


def test_in_a_very_long_line_nothing_is_repeated():
    assert Desk("count = 1; " + "x = count; " * 300).replace("count", "total").change() is None


def test_a_change_that_was_taken_back_is_none():
    desk = Desk(RENAMED).replace("count", "total")
    assert desk.change() == ("count", "total")
    assert desk.replace("total", "count").change() is None


def test_the_opposite_of_a_change_is_its_undoing():
    desk = Desk(RENAMED).replace("count", "total")
    assert desk.change() is not None
    desk.replace("count", "total")
    assert desk.change() is not None
    desk.put(desk.find("total"), "total", "count")  # the first place, which is not the last change
    assert desk.change() is None


def test_lines_that_are_written_anew_one_after_the_other_are_changes_of_their_own():
    desk = Desk(RENAMED).replace("def f(count):\n", "def f(total):\n")
    assert desk.change() == ("count", "total")
    desk.replace("    x = count + 1\n", "    x = total + 1\n")
    assert (desk.change(), desk.lines()) == (("count", "total"), [2])


def test_text_that_is_sent_again_is_no_change():
    desk = Desk(RENAMED).replace("count", "total")
    desk.put(0, "def", "def")
    desk.put(3, "", "")
    assert desk.change() == ("count", "total")


def test_a_line_that_looks_like_a_secret_is_not_repeated():
    desk = Desk('password = "hunter2-Zq8!kPx"\npassword\n').replace("password", "pass_word")
    assert desk.change() is None


@given(
    st.text("ab\n", max_size=12), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5), st.text("cd", max_size=4)))
)
def test_a_change_says_what_stood_there_before(text, edits):
    """However edits touch: the text with the old part in the place of the new one is the text before the change."""
    now, change, before = text, None, text
    for start, count, inserted in edits:
        start = min(start, len(now))
        edit = Edit(start, now[start : start + count], inserted)
        made = differing(Change(edit.start, edit.removed, edit.inserted))
        if made.old == made.new:
            continue
        if change is None or change.then(Edit(made.start, made.old, made.new)) is None:
            before = now
        change = extended_change(change, [edit])
        now = now[:start] + inserted + now[start + count :]
        assert now[: change.start] + change.old + now[change.end :] == before


def test_a_change_that_grows_too_large_is_forgotten():
    assert extended_change(None, [Edit(0, "", "x" * (MAX_CHANGE_CHARS + 1))]) is None
    assert extended_change(None, [Edit(n, "", "x") for n in range(MAX_CHANGE_CHARS + 2)]).new == "x"


# Its places


def test_places_behind_the_change_come_first_and_those_before_it_nearest_first():
    desk = Desk("a = item\nb = item\nitem()\nc = item\nd = item\n").replace("item", "thing", 2)
    assert desk.lines() == [3, 4, 1, 0]


def test_a_local_name_is_not_renamed_in_other_functions():
    assert Desk(RENAMED).replace("count", "total").lines() == [1, 2]


def test_the_name_of_a_function_is_renamed_in_all():
    desk = Desk("def f():\n    return 1\n\ndef g(x):\n    return f() + x.f()\n").replace("f():", "size():")
    assert desk.lines() == [4]


def test_the_scope_stays_that_of_the_first_place():
    desk = Desk("def f(n):\n    def g():\n        return n\n    return n\n").replace("n):", "size):")
    assert desk.lines() == [2, 3]
    assert desk.replace("return n", "return size").lines() == [3]


def test_a_member_is_that_of_the_same_owner_and_one_of_self_that_of_its_class():
    text = """\
        class A:
            def __init__(self):
                self.n = 1
            def f(self, o):
                return self.n + o.n + n
        class B:
            def f(self):
                return self.n
    """
    assert Desk(text).replace("n = 1", "size = 1").lines() == [4]


@pytest.mark.parametrize("other", ['"count"', "# count", "counts", "f(count=1)", "x.count"])
def test_strings_comments_parts_of_words_keywords_and_members_are_other_things(other):
    assert Desk(f"count = 1\n{other}\n").replace("count", "total").lines() == []


def test_an_edit_inside_a_string_is_not_repeated():
    assert Desk('x = "count"\ny = "count"\ncount\n').replace("count", "total").lines() == []


def test_code_in_a_string_is_code():
    assert Desk('count = 1\nf"{count} count"\n').replace("count", "total").texts() == [("count", "total")]


def test_a_name_that_was_there_before_is_another_thing_and_no_renaming():
    assert Desk("def f(a, b):\n    g(a)\n    return a + b\n").replace("g(a)", "g(b)").lines() == []


def test_a_local_name_that_is_not_changed_where_it_stands_first_goes_on_only_by_key():
    desk = Desk(RENAMED).replace("count", "total", 1)
    assert (desk.lines(), desk.lines(invoked=True)) == ([], [2, 0])


def test_who_goes_on_by_hand_is_understood_although_the_editor_asks_at_every_key():
    desk = Desk(RENAMED).replace("count", "total")
    assert desk.lines() == [1, 2]
    desk.erase(desk.find("count"), 5)
    for number, key in enumerate("total"):
        desk.type(desk.find("x = ") + 4 + number, key)
        desk.lines()
    assert (desk.change(), desk.lines()) == (("count", "total"), [2])


def test_the_same_renaming_in_another_function_is_one_of_its_own():
    desk = Desk(RENAMED).replace("count", "total")
    assert desk.lines() == [1, 2]
    desk.replace("x = ", "y = ")
    assert desk.lines() == []
    assert desk.replace("g(count)", "g(total)").lines() == [5]


def test_types_mean_the_same_in_the_whole_file():
    desk = Desk("def f(a: int):\n    b: int = a\n\ndef g(a: int):\n    pass\n").replace("int", "Size")
    assert desk.lines() == [1, 3]
    desk = Desk("def f(a: int):\n    b: int = a\n\ndef g(a: str):\n    pass\n").replace("int", "str")
    assert desk.lines() == []


def test_a_place_that_reads_as_the_new_text_is_none():
    desk = Desk("def f(x):\n    g(x)\n    h(self.x)\n    return x\n")
    desk.type(desk.find("x)", 1), "self.")
    assert desk.texts() == [("x", "self.x"), ("x", "self.x")]
    assert desk.lines() == [3, 0]


def test_an_argument_is_given_to_calls_with_other_arguments_too():
    desk = Desk("load(a)\nload(b, c)\nload(d, enc)\nload()\nx.load(a)\n")
    desk.type(desk.find(")"), ", enc")
    assert desk.texts() == [("load(b, c)", "load(b, c, enc)"), ("load()", "load(enc)")]
    desk.replace("load(b, c)", "load(b, c, enc)")
    assert desk.texts() == [("load()", "load(enc)")]


def test_at_most_so_many_places_are_found():
    assert len(Desk("item\n" * 100).replace("item", "thing").lines()) == MAX_OFFERED_SITES


def test_without_a_syntax_tree_there_are_no_places():
    assert Desk("count count\n", "plaintext").replace("count", "total").lines() == []


def test_a_place_that_was_offered_and_then_edited_is_over():
    desk = Desk(RENAMED).replace("count", "total")
    snapshot = desk.document.parsed()
    first, second = desk.repeatable.sites(desk.repeatable.replacement(snapshot), snapshot, invoked=False)
    desk.repeatable.offer("1", first)
    desk.put(first.start, "count", "total")
    assert desk.lines() == [2]
    desk.repeatable.dismiss("1")
    desk.put(0, "", "\n")  # another change: what was over for the first one is not for this one
    assert desk.change() is None
    assert second.old == "count"


def test_line_breaks_of_two_characters_and_astral_characters_do_not_move_places():
    desk = Desk('s = "𝒳"; count = 1\r\nt = "𝒳𝒳"; print(count)\r\n').replace("count", "total")
    snapshot = desk.document.parsed()
    [site] = desk.repeatable.sites(desk.repeatable.replacement(snapshot), snapshot, invoked=False)
    assert snapshot.slice(site.start, site.end) == "count"
    assert snapshot.position_at(site.start) == (1, 18)


# While it is being made


def test_while_the_syntax_is_not_known_nothing_is_kept_of_a_change(monkeypatch):
    desk = Desk(RENAMED)
    assert desk.text
    monkeypatch.setattr(module, "parse", lambda *_: None)
    desk.replace("count", "total")
    assert not desk.document.parsed().is_parsed and desk.lines(invoked=True) == []
    monkeypatch.undo()
    desk.document.finish_parsing()
    assert desk.document.parsed().is_parsed and desk.lines() == [1, 2]


def test_a_switch_that_was_asked_about_too_early_is_still_none_to_repeat(monkeypatch):
    desk = Desk("def f(a, b):\n    g(a)\n    return a + b\n")
    assert desk.text
    monkeypatch.setattr(module, "parse", lambda *_: None)
    assert desk.replace("g(a)", "g(b)").lines(invoked=True) == []
    monkeypatch.undo()
    desk.document.finish_parsing()
    assert desk.lines(invoked=True) == []


def test_a_word_changed_in_a_comment_says_nothing_of_names():
    desk = Desk("# count\n" + dedent(RENAMED)).replace("count", "total")
    assert desk.lines(invoked=True) == []
    assert desk.replace("count", "total").lines() == [2, 3]


@pytest.mark.parametrize("behind", [", mode", " = 1, ", ":", ")\n"], ids=repr)
@pytest.mark.parametrize("at_once", [True, False])
def test_what_follows_a_renamed_word_is_no_part_of_its_change(behind, at_once):
    desk = Desk("def f(count, other):\n    return count\n")
    desk.erase(6, 5).type(6, "total")
    desk.put(11, "", behind) if at_once else desk.type(11, behind)
    assert desk.change() == ("count", "total")
    desk.replace("other", "another")
    assert desk.change() == ("other", "another")


def test_a_long_text_put_behind_a_renamed_word_does_not_end_its_renaming():
    desk = Desk(RENAMED).replace("count", "total")
    desk.put(11, "", ", x):\n" + "    x()\n" * MAX_CHANGE_CHARS)
    assert desk.change() == ("count", "total")


def test_a_word_goes_on_to_be_changed_although_something_follows_it():
    desk = Desk("count = 1\n").replace("count", "total")
    desk.type(5, ", x").type(5, "s")
    assert desk.change() == ("count", "totals")
    desk.type(9, "y").erase(5, 1)
    assert desk.change() == ("count", "total")


def test_a_letter_at_the_end_of_a_word_changes_it_whatever_is_put_behind_it():
    assert Desk("count = 1\n").type(5, "s").type(6, ", x").change() == ("count", "counts")


@pytest.mark.parametrize("new", ["self.count", "data[0]", "std::count", "size()"])
def test_a_longer_expression_in_place_of_a_name_is_one_change(new):
    assert Desk("f(count)\n").erase(2, 5).type(2, new).change() == ("count", new)


def test_a_name_that_is_being_erased_or_retyped_is_unfinished_while_the_cursor_is_in_it():
    desk = Desk(RENAMED)
    for erased in range(1, 5):
        desk.put(11 - erased, desk.text[11 - erased], "")
        assert desk.is_unfinished(11 - erased)
    desk.put(6, "c", "")
    for typed, is_unfinished in (("c", True), ("o", True), ("p", False), ("y", False)):
        at = desk.find(",") if "," in desk.text else desk.find("):")
        desk.put(at, "", typed)
        assert desk.is_unfinished(at + 1) is is_unfinished
    desk.put(9, "y", "")
    assert desk.is_unfinished(9) and not desk.is_unfinished(0)


def test_a_shortened_name_is_finished_once_the_cursor_has_left_it():
    desk = Desk("counter = 1\n").erase(5, 2)
    assert desk.is_unfinished(5) and desk.is_unfinished(0) and not desk.is_unfinished(8)


# By hand


def test_who_goes_on_by_hand_and_asks_only_then_is_understood():
    desk = Desk(RENAMED).replace("count", "total").replace("count", "total")
    assert desk.lines() == [2]


def test_places_changed_by_hand_from_below_are_one_renaming():
    desk = Desk(RENAMED).replace("return count", "return total").replace("count", "total")
    assert desk.lines() == [1]


def test_a_renaming_at_two_cursors_is_one():
    desk = Desk(RENAMED)
    use, name = desk.find("count", 1), desk.find("count")
    desk.put(use, "count", "total")
    desk.put(name, "count", "total")
    assert desk.lines() == [2]


def test_a_switch_made_twice_by_hand_is_still_none_to_repeat():
    desk = Desk("def f(a, b):\n    g(a)\n    h(a)\n    return a + b\n")
    assert desk.replace("g(a)", "g(b)").replace("h(a)", "h(b)").lines() == []


def test_a_renaming_in_another_function_is_one_of_its_own_although_nobody_asked_between():
    desk = Desk(RENAMED).replace("count", "total")
    assert desk.lines() == [1, 2]
    assert desk.replace("g(count)", "g(total)").lines() == [5]


@given(
    st.text("ab ", min_size=1, max_size=12), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.text("c, ")))
)
def test_finished_changes_stay_where_their_text_is(text, edits):
    desk = Desk(text)
    for start, count, inserted in edits:
        start = min(start, len(desk.text))
        desk.put(start, desk.text[start : start + count], inserted)
        snapshot = desk.document.parsed()
        for each in desk.repeatable._change_log.finished(snapshot):
            assert snapshot.slice(each.start, each.end) == each.new


# What the model is asked


def test_the_model_sees_the_text_without_the_old_one():
    desk = Desk(RENAMED).replace("count", "total")
    snapshot = desk.document.parsed()
    change = desk.repeatable.replacement(snapshot)
    [site, _] = desk.repeatable.sites(change, snapshot, invoked=False)
    request = scoring_request(site, change, snapshot, "a.py", None)
    shown = "".join(request.far[1:-1]) + request.near + "".join(request.suffix)
    assert shown == desk.text.replace("x = count", "x = ", 1)
    assert request.near.endswith("x = ")
    assert request.far[-1].splitlines()[1:] == ["# @@", "# -def f(count):", "# +def f(total):"]


def test_a_chance_is_one_half_where_both_are_alike_and_never_out_of_bounds():
    assert probability_of_new(-3.0, -3.0) == 0.5
    assert probability_of_new(-1e6, 0.0) == 1.0
    assert probability_of_new(0.0, -1e6) == pytest.approx(0.0)


# Calls


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "def f(a):\n    f(1)\n    f(2)\n"),
        ("javascript", "function f(a) {\n  f(1)\n  f(2)\n}\n"),
        ("javascript", "class A {\n  f(a) {\n  f(1)\n  f(2)\n}}\n"),
        ("c", "int f(int a);\nint x() { f(1);\n f(2); }\n"),
        ("cpp", "int A::f(int a) {\n f(1);\n f(2); }\n"),
        ("rust", "fn f(a: i32) {\n    f(1);\n    f(2);\n}\n"),
        ("go", "func f(a int) {\n\tf(1)\n\tf(2)\n}\n"),
        ("java", "class A { void f(int a) {\n    f(1);\n    f(2);\n} }\n"),
        ("typescript", "function f(a: number): void;\nfunction g() { f(1);\n f(2) }\n"),
        ("lua", "function f(a)\n  f(1)\n  f(2)\nend\n"),
    ],
)
def test_a_definition_is_no_call(language, text):
    desk = Desk(text, language)
    desk.type(desk.find("f(1") + 3, ", true")
    assert desk.texts(invoked=True) == [("f(2)", "f(2, true)")]
    desk = Desk(text, language)
    desk.type(desk.find(")"), ", b")
    assert desk.texts(invoked=True) == []


def test_calls_of_a_line_are_found_with_what_their_brackets_hold():
    found = {call.name: call.arguments for call in calls("x = f(a, g(b, '),('), [1, 2]) + h()")}
    assert found == {"f": ("a", "g(b, '),(')", "[1, 2]"), "g": ("b", "'),('"), "h": ()}


@pytest.mark.parametrize(
    ("old", "new", "other", "expected"),
    [
        ("f(a)", "f(a, k=1)", "f(b)", "f(b, k=1)"),
        ("f(a, k=1)", "f(a)", "f(b, k=1)", "f(b)"),
        ("f(a, k=1)", "f(a)", "f(b)", None),
        ("f(a)", "f(c, a)", "f(b, d)", "f(c, b, d)"),
        ("f(a)", "f(a, k)", "f(b, k)", None),
        ("f(a)", "f(a, k)", "g(b)", None),
        ("f(a)", "f(b)", "f(c)", None),
        ("f()", "f(a)", "f()", "f(a)"),
    ],
)
def test_other_calls_are_changed_at_the_same_end_of_their_arguments(old, new, other, expected):
    made = [next(iter(calls(text))) for text in (old, new, other)]
    assert changed_alike(*made) == expected


def test_the_innermost_call_around_a_place_is_the_one():
    line = "f(g(a), b)"
    assert call_around(line, 4, 5).name == "g"
    assert call_around(line, 8, 9).name == "f"
    assert call_around(line, 0, 1) is None
