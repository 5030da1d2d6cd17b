"""Edits show whether a suggestion was accepted, typed, rejected, ignored or never seen; reports override them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.observer import Observer
from mercury_lsp.statistics.store import OutcomeRecord

URI = "file:///sample.py"
TEXT = "value(1)"


class Desk:
    """A document, its user and the observer."""

    def __init__(self, text: str = "x = "):
        self.text = text
        self.records: list[OutcomeRecord] = []
        self.observer = Observer(self.records.append)
        self.observer.switch(True)
        self._ids = 0

    def suggestion(self, text: str, name: str | None = None) -> Suggestion:
        self._ids += 1
        return Suggestion(text, (0, 0), (0, 0), 0.8, 3, 5.0, id=name or f"s{self._ids}")

    def show(self, *texts: str, at: int | None = None, name: str | None = None, automatic: bool = True) -> None:
        """Request suggestions and answer with these texts, at the end of the document by default."""
        request = self.observer.requested(URI, len(self.text) if at is None else at, "python", automatic)
        self.observer.answered(request, [self.suggestion(text, name) for text in texts])

    def edit(self, start: int, removed: int, inserted: str) -> Edit:
        """Change the text without a notification."""
        edit = Edit(start, self.text[start : start + removed], inserted)
        self.text = self.text[:start] + inserted + self.text[start + removed :]
        return edit

    def change(self, start: int, removed: int, inserted: str) -> None:
        """Change the text, with its own notification."""
        self.observer.edited(URI, [self.edit(start, removed, inserted)])

    def insert(self, text: str, at: int | None = None) -> None:
        self.change(len(self.text) if at is None else at, 0, text)

    def type(self, text: str) -> None:
        for key in text:
            self.insert(key)

    def close(self) -> OutcomeRecord:
        """Close the document; returns its only record."""
        self.observer.close()
        [record] = self.records
        return record


def result(record: OutcomeRecord) -> tuple[str, int]:
    return record.outcome, record.saved


@pytest.fixture
def desk() -> Desk:
    return Desk()


# Accepted


def test_the_whole_text_inserted_at_once_is_accepted(desk: Desk):
    desk.show(TEXT)
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_a_replacement_of_the_word_or_line_before_the_cursor_is_the_same_as_an_insertion():
    desk = Desk("  pri")
    desk.show("nt(x)")
    desk.change(2, 3, "print(x)")
    assert result(desk.close()) == ("accepted", 5)


def test_accepting_the_remainder_after_typing_saves_only_the_remainder(desk: Desk):
    desk.show(TEXT)
    desk.type("va")
    desk.insert("lue(1)")
    assert result(desk.close()) == ("accepted", 6)


# Partly accepted


def test_a_word_at_once_is_partly_accepted(desk: Desk):
    desk.show(TEXT)
    desk.insert("value")
    assert result(desk.close()) == ("partly", 5)


def test_word_after_word_to_the_end_is_accepted(desk: Desk):
    desk.show("one two")
    desk.insert("one ")
    desk.insert("two")
    assert result(desk.close()) == ("accepted", 7)


# Typed


def test_typing_the_same_text_key_by_key_is_no_acceptance(desk: Desk):
    desk.show(TEXT)
    desk.type(TEXT)
    assert result(desk.close()) == ("typed", 0)


def test_keys_gathered_in_one_notification_are_keys(desk: Desk):
    desk.show(TEXT)
    desk.observer.edited(URI, [desk.edit(len(desk.text), 0, key) for key in TEXT])
    assert desk.close().outcome == "typed"


@pytest.mark.parametrize(("shown", "inserted"), [("()", "()"), ("\n    x", "\n    "), ("    x", "    ")], ids=repr)
def test_text_that_one_key_inserts_is_typed(desk: Desk, shown: str, inserted: str):
    desk.show(shown)
    desk.insert(inserted)
    assert desk.close().saved == 0


# Rejected and ignored


def test_typing_something_else_is_a_rejection(desk: Desk):
    desk.show(TEXT)
    desk.type("vx")
    assert result(desk.close()) == ("rejected", 0)


def test_a_suggestion_untouched_until_its_document_is_closed_was_ignored(desk: Desk):
    desk.show(TEXT)
    desk.observer.closed(URI)
    assert desk.close().outcome == "ignored"


def test_another_suggestion_at_the_same_place_supersedes_it(desk: Desk):
    desk.show(TEXT)
    desk.show("other")
    desk.insert("other")
    desk.observer.close()
    assert sorted(each.outcome for each in desk.records) == ["accepted", "ignored"]


def test_an_answer_too_late_to_be_seen_does_not_count(desk: Desk):
    request = desk.observer.requested(URI, 4, "python", True)
    desk.type("x")
    desk.observer.answered(request, [desk.suggestion(TEXT)])
    desk.observer.close()
    assert desk.records == []


def test_a_suggestion_hidden_by_a_popup_does_not_count(desk: Desk):
    desk.show(TEXT)
    desk.observer.retract(URI)
    desk.observer.close()
    assert desk.records == []


# Reports


def test_a_reported_acceptance_is_not_counted_twice(desk: Desk):
    desk.show(TEXT, name="one")
    desk.insert(TEXT)
    desk.observer.reported_accepted("one")
    assert result(desk.close()) == ("accepted", 8)


def test_an_acceptance_may_be_reported_before_its_edit(desk: Desk):
    desk.show(TEXT, name="one")
    desk.observer.reported_accepted("one")
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_a_reported_rejection_counts(desk: Desk):
    desk.show(TEXT, name="one")
    desk.observer.reported_rejected("one")
    assert desk.close().outcome == "rejected"


def test_if_the_client_reports_what_it_shows_anything_else_was_not_seen(desk: Desk):
    desk.show(TEXT, name="one")
    desk.observer.reported_shown("one")
    desk.type("x")
    desk.show(TEXT, name="two")
    desk.type("x")
    desk.show(TEXT)
    desk.insert(TEXT)
    desk.observer.close()
    assert [each.outcome for each in desk.records] == ["rejected", "accepted"]


# Limits


EDITS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 6), st.sampled_from(["", "v", "va", "lue", "value(1)", "\r\n", "𝒳 "])),
    min_size=1,
    max_size=3,
)
STEPS = st.one_of(EDITS, st.sampled_from(["show", "rest", "reported", "part", "no", "here"]))


@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_the_figures_add_up_and_spans_are_tracked(steps: list):
    desk = Desk("x = 1\ny = 𝒳\r\nz = ")
    desk.show(TEXT, "value", name="one", at=4)
    for step in steps:
        if isinstance(step, str):
            happen(desk, step)
        else:
            starts = [min(start, len(desk.text)) for start, _, _ in step]
            edits = [desk.edit(at, removed, new) for at, (_, removed, new) in zip(starts, step, strict=True)]
            desk.observer.edited(URI, edits)
        check_spans(desk)
    desk.observer.close()
    for record in desk.records:
        assert 0 <= record.saved <= record.length
        assert record.saved == 0 or record.outcome in ("accepted", "partly")


def happen(desk: Desk, step: str) -> None:
    match step:
        case "show":
            desk.show(TEXT, at=len(desk.text) // 2)
        case "rest" if "value" in desk.text:
            desk.show("(1)", name="one", at=desk.text.index("value") + 5)
        case "reported" | "part":
            desk.observer.reported_accepted("one", in_part=step == "part")
        case "no":
            desk.observer.reported_rejected("one")
        case "here":
            desk.insert(TEXT, at=len(desk.text) // 2)


def check_spans(desk: Desk) -> None:
    for state in desk.observer._documents.values():
        for impression in filter(None, [state.requested, state.shown]):
            assert desk.text[impression._start : impression.end] == impression._text
