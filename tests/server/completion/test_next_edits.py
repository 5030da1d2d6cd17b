"""Where else a change is offered, by rules alone, and what the model is asked about a site."""

import pytest

from mercury_lsp.documents import document as module
from tests.support.next_edit_desk import RENAMED, URI, NextEditDesk

# Sites


def test_sites_after_the_change_come_first_then_those_before_it_nearest_first():
    desk = NextEditDesk("a = item\nb = item\nitem()\nc = item\nd = item\n").replace("item", "thing", 2)
    assert desk.lines() == [3, 4, 1, 0]


def test_a_local_name_is_not_renamed_in_other_functions():
    assert NextEditDesk(RENAMED).replace("count", "total").lines() == [1, 2]


def test_the_name_of_a_function_is_renamed_everywhere():
    desk = NextEditDesk("def f():\n    return 1\n\ndef g(x):\n    return f() + x.f()\n").replace("f():", "size():")
    assert desk.lines() == [4]


def test_the_scope_of_the_first_site_is_kept():
    desk = NextEditDesk("def f(n):\n    def g():\n        return n\n    return n\n").replace("n):", "size):")
    assert desk.lines() == [2, 3]
    assert desk.replace("return n", "return size").lines() == [3]


@pytest.mark.parametrize("other", ['"count"', "# count", "counts", "f(count=1)", "x.count"])
def test_strings_comments_parts_of_words_keywords_and_members_are_no_sites(other):
    assert NextEditDesk(f"count = 1\n{other}\n").replace("count", "total").lines() == []


def test_an_edit_inside_a_string_is_not_repeated():
    assert NextEditDesk('x = "count"\ny = "count"\ncount\n').replace("count", "total").lines() == []


def test_code_embedded_in_a_string_is_code():
    assert NextEditDesk('count = 1\nf"{count} count"\n').replace("count", "total").texts() == [("count", "total")]


def test_choosing_a_name_that_was_there_before_is_no_renaming():
    assert NextEditDesk("def f(a, b):\n    g(a)\n    return a + b\n").replace("g(a)", "g(b)").lines() == []


def test_a_local_name_of_lua_is_renamed_where_it_is_declared():
    desk = NextEditDesk("local count = 1\nprint(count)\n", "lua").replace("count", "total")
    assert (desk.must_go_on(), desk.lines()) == (True, [1])


def test_a_local_name_not_changed_at_its_first_use_is_offered_only_when_invoked():
    desk = NextEditDesk(RENAMED).replace("count", "total", 1)
    assert not desk.must_go_on() and desk.lines() == [2, 0]


def test_a_renaming_continued_by_hand_is_recognised_although_the_editor_asks_at_every_key():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    assert desk.lines() == [1, 2]
    desk.erase(desk.find("count"), 5)
    for number, key in enumerate("total"):
        desk.type(desk.find("x = ") + 4 + number, key)
        desk.lines()
    assert (desk.change(), desk.lines()) == (("count", "total"), [2])


def test_types_mean_the_same_throughout_the_file():
    desk = NextEditDesk("def f(a: int):\n    b: int = a\n\ndef g(a: int):\n    pass\n").replace("int", "Size")
    assert desk.lines() == [1, 3]
    desk = NextEditDesk("def f(a: int):\n    b: int = a\n\ndef g(a: str):\n    pass\n").replace("int", "str")
    assert desk.lines() == []


def test_without_a_syntax_tree_there_are_no_sites():
    assert NextEditDesk("count count\n", "plaintext").replace("count", "total").lines() == []


def test_crlf_and_astral_characters_do_not_shift_sites():
    desk = NextEditDesk('s = "𝒳"; count = 1\r\nt = "𝒳𝒳"; print(count)\r\n').replace("count", "total")
    snapshot = desk.snapshot
    [site] = desk.renaming().left
    assert snapshot.slice(site.start, site.end) == "count"
    assert snapshot.position_at(site.start) == (1, 18)


@pytest.mark.parametrize(
    "edits",
    [
        [("    y = obj", "\n    y = obj")],
        [("x = count", "x = - count"), ("y = obj", "y = other.obj")],
        [("# end\n", "# end.\n"), ("# end.\n", "# end\n")],
        [("total):", "totals):"), ("totals):", "total):")],
        [("# end\n", "# end of it\n"), ("total):", "totl):"), ("totl):", "total):")],
        [("obj", "thing"), *[("end", "the end")] * 40],
        [(f"p{n} = 0", f"q{n} = 0") for n in range(9)],
    ],
    ids=["a blank line", "edits", "a typo elsewhere", "a typo", "a typo later", "many edits", "names without a use"],
)
def test_a_renaming_goes_on_after_other_edits(edits):
    unused = "".join(f"p{n} = 0\n" for n in range(9))
    desk = NextEditDesk(f"def f(count):\n    x = count\n    y = obj\n    return count\n{unused}# end\n")
    desk.replace("count", "total")
    assert desk.texts() == [("count", "total")] * 2
    for old, new in edits:
        desk.replace(old, new).lines()
    assert (desk.change(), desk.texts()) == (("count", "total"), [("count", "total")] * 2)
    desk.replace("count", "total").replace("# ", "# the ")
    assert desk.texts() == [("count", "total")]
    assert desk.replace("count", "total").replace("# ", "# the ").texts() == []


def test_a_name_renamed_once_more_goes_on_at_the_places_of_either():
    desk = NextEditDesk("def f(count):\n    x = count\n    y = count\n    return count\n")
    desk.replace("count", "total").lines()
    desk.replace("count", "total").lines()
    for number, key in enumerate("rows"):
        desk.put(6 + number, "total" if number == 0 else "", key)
        desk.lines()
    assert desk.texts() == [("total", "rows"), ("count", "rows"), ("count", "rows")]
    assert desk.replace("total", "rows").texts() == [("count", "rows")] * 2


def test_a_renaming_taken_back_is_forgotten_whatever_follows():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    assert desk.lines() == [1, 2]
    assert desk.replace("total", "count").replace("x = ", "x =  ").lines() == []


@pytest.mark.parametrize("new", ["total", "coUnt"])
def test_a_renaming_rests_after_one_of_its_places_was_taken_back(new):
    desk = NextEditDesk(RENAMED).replace("count", new).replace("x = count", f"x = {new}")
    assert desk.lines() == [2]
    assert desk.replace(f"x = {new}", "x = count").lines() == []


def test_the_latest_of_two_renamings_comes_first_and_then_the_other():
    desk = NextEditDesk("def f(first, second):\n    a = first\n    b = second\n    return a\n")
    assert desk.replace("first", "begin").texts() == [("first", "begin")]
    assert desk.replace("second", "end").texts() == [("second", "end")]
    assert desk.replace("b = second", "b = end").texts() == [("first", "begin")]


# Before the parse


def test_nothing_is_recorded_of_a_change_while_the_document_is_unparsed(monkeypatch):
    desk = NextEditDesk(RENAMED)
    assert desk.text
    monkeypatch.setattr(module, "parse", lambda *_: None)
    desk.replace("count", "total")
    assert not desk.snapshot.is_parsed and desk.lines() == []
    monkeypatch.undo()
    desk.documents.finish_parsing(URI)
    assert desk.snapshot.is_parsed and desk.lines() == [1, 2]


def test_a_switch_requested_before_the_parse_is_still_not_repeated(monkeypatch):
    desk = NextEditDesk("def f(a, b):\n    g(a)\n    return a + b\n")
    assert desk.text
    monkeypatch.setattr(module, "parse", lambda *_: None)
    assert desk.replace("g(a)", "g(b)").lines() == []
    monkeypatch.undo()
    desk.documents.finish_parsing(URI)
    assert desk.lines() == []


# Continued by hand


def test_a_name_of_another_file_changed_in_two_places_is_left_alone():
    desk = NextEditDesk("from a import count\n\na = count(1)\nb = count(2)\nc = count(3)\n")
    desk.replace("count", "total", 1).replace("count", "total", 1)
    assert not desk.must_go_on() and desk.lines() == [4, 0]


def test_sites_changed_by_hand_from_the_bottom_up_are_one_renaming():
    desk = NextEditDesk(RENAMED).replace("return count", "return total").replace("count", "total")
    assert desk.lines() == [1]


def test_a_renaming_at_two_cursors_is_one():
    desk = NextEditDesk(RENAMED)
    use, name = desk.find("count", 1), desk.find("count")
    desk.put(use, "count", "total")
    desk.put(name, "count", "total")
    assert desk.lines() == [2]


def test_a_renaming_in_another_function_is_separate_even_without_a_request_between():
    desk = NextEditDesk(RENAMED).replace("count", "total")
    assert desk.lines() == [1, 2]
    assert desk.replace("g(count)", "g(total)").lines() == [5]
