"""When a rewritten place is offered: never against the user, and only for the text it was made for."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from mercury_lsp.completion.coalescing import Coalescer
from mercury_lsp.completion.next_edits.checks import MAX_EDIT_CHARS, is_wanted
from mercury_lsp.completion.next_edits.diagnostics import Evidence
from mercury_lsp.completion.next_edits.next_edits import NextEdits
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewritten_places import MIN_CHANCE_BY_KEY, MIN_CHANCE_UNASKED, Surroundings
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from tests.server.completion.test_history import A, HistoryDesk

CODE = "def load(path):\n    return read(path)\n\n\ndef show(name):\n    text = load(name)\n    return text\n"


@dataclass
class Answer:
    """A rewrite, or what replaces `old` by `new`."""

    start: int
    end: int
    text: str
    confidence: float = 0.9


@dataclass
class FixedRanking:
    """What a head would say."""

    best: list[Place]


class RewriteDesk(HistoryDesk):
    """A user whose function got an argument, and a model that rewrites its call."""

    def __init__(self, old: str = "load(name)", new: str = "load(name, 1)") -> None:
        super().__init__(a=CODE)
        self.replace("load(path)", "load(path, count)")
        self.asked: list[Place] = []
        self.next_edits = NextEdits(Coalescer(), self.score)
        self.next_edits.rewritten_places.rewrite = self.rewrite
        self.old, self.new, self.places = old, new, [self.place(5)]
        self.errors: frozenset[int] = frozenset()

    async def score(self, *_: object) -> list[float] | None:
        return None

    async def rewrite(self, place: Place, history: Sequence[object], cancel: object) -> Answer | None:
        self.asked.append(place)
        at = place.snapshot.text.find(self.old)
        return Answer(at, at + len(self.old), self.new) if at >= 0 else None

    def place(self, line: int, chance: float = 0.9) -> Place:
        return Place(self.documents.parsed(A), "a.py", line, max(0, line - 3), line + 2, chance)

    def found(self, invoked: bool = False) -> list[Suggestion]:
        ranking = FixedRanking(self.places) if self.places else None
        around = Surroundings(self.history.hunks(), lambda: ranking, lambda _: Evidence(self.errors))
        cursor = None if invoked else 0
        finding = self.next_edits.find(self.documents.parsed(A), "a.py", "edit", cursor, lambda: around)
        return asyncio.run(finding)


def wanted(desk: HistoryDesk, old: str, new: str) -> bool:
    at = desk.text().index(old)
    return is_wanted(desk.documents.parsed(A), at, at + len(old), new, desk.history.hunks())


def test_a_rewritten_place_is_offered():
    desk = RewriteDesk()
    [offer] = desk.found()
    assert (offer.text, offer.start, offer.end) == ("load(name, 1)", (5, 11), (5, 21))


def test_without_a_model_that_rewrites_nothing_is_asked():
    desk = RewriteDesk()
    desk.next_edits.rewritten_places.rewrite = None
    assert desk.found() == [] and desk.asked == []


@pytest.mark.parametrize(
    ("chance", "unasked", "by_key"),
    [(MIN_CHANCE_UNASKED, 1, 1), (MIN_CHANCE_BY_KEY, 0, 1), (MIN_CHANCE_BY_KEY / 2, 0, 0)],
)
def test_an_unlikely_place_is_asked_about_only_by_key(chance, unasked, by_key):
    desk = RewriteDesk()
    desk.places = [desk.place(5, chance)]
    assert (len(desk.found()), len(desk.found(invoked=True))) == (unasked, by_key)


def test_a_place_of_another_version_is_not_asked_about():
    desk = RewriteDesk()
    desk.put((0, "", "import os\n"))
    assert desk.found() == [] and desk.asked == []


def test_a_line_in_which_an_error_appeared_is_asked_about_first_and_once():
    desk = RewriteDesk(old="nowhere")
    desk.errors, desk.places = frozenset({5, 6}), [desk.place(4), desk.place(1)]
    assert desk.found() == [] and [each.line for each in desk.asked] == [5, 1]
    desk.asked.clear()
    desk.places = []
    assert desk.found() == [] and [each.line for each in desk.asked] == [5]


def test_a_place_that_stays_is_passed_over():
    desk = RewriteDesk(old="nowhere")
    desk.places = [desk.place(5), desk.place(1)]
    assert desk.found() == [] and [each.line for each in desk.asked] == [5, 1]


def test_a_dismissed_edit_is_not_offered_again():
    desk = RewriteDesk()
    [offer] = desk.found()
    assert [each.text for each in desk.found()] == [offer.text]
    [offer] = desk.found()
    desk.next_edits.dismissed(offer.id)
    assert desk.found() == []


def test_an_edit_that_was_taken_and_undone_is_not_offered_again():
    desk = RewriteDesk()
    [_] = desk.found()
    at = desk.text().index("load(name)")
    for old, new in (("load(name)", "load(name, 1)"), ("load(name, 1)", "load(name)")):
        desk.put((at, old, new))
        desk.next_edits.edited(A, [Edit(at, old, new)])
    desk.places = [desk.place(5)]
    assert desk.found() == []


# Never


def test_typing_on_above_an_offer_does_not_decline_it():
    desk = RewriteDesk()
    assert desk.found()
    at = desk.text().index("    text = load(name)") - 1
    for offset in range(len("load(name)") + 20):
        desk.next_edits.edited(A, [Edit(at - 1 + offset, "", "x")])
    assert desk.found()


def test_nothing_and_white_space_alone_are_not_wanted():
    desk = HistoryDesk(a=CODE).replace("load(path)", "load(path, count)")
    assert not wanted(desk, "load(name)", "load(name)")
    assert not wanted(desk, "text = load(name)", "text  =  load( name )")
    assert not wanted(desk, "    text", "        text")


def test_what_reverts_the_user_is_not_wanted():
    desk = HistoryDesk(a=CODE).replace("load(path)", "load(path, count)")
    assert not wanted(desk, "def load(path, count):\n", "def load(path):\n")
    desk = HistoryDesk(a=CODE).replace("text = load(name)", "shown = load(name)")
    assert wanted(desk, "return text", "return shown")
    assert not wanted(desk, "shown = load", "text = load")


def test_the_users_words_taken_back_elsewhere_are_not_wanted():
    desk = HistoryDesk(a=CODE + "\nx = total\n").replace("load(name)", "total(name)")
    assert not wanted(desk, "x = total", "x = load")


def test_what_was_removed_is_not_put_back():
    desk = HistoryDesk(a=CODE).replace("    text = load(name)\n", "")
    at = desk.text().index("    return text")
    assert not is_wanted(desk.documents.parsed(A), at, at, "    text = load(name)\n", desk.history.hunks())


def test_what_breaks_the_parse_is_not_wanted():
    assert not wanted(HistoryDesk(a=CODE), "load(name)", "load(name")


def test_lines_that_look_like_secrets_are_not_touched():
    desk = HistoryDesk(a=CODE + 'password = "hunter2-Zq8!kPx"\n')
    assert not wanted(desk, "password", "passphrase")
    assert not wanted(desk, "text = load(name)", 'password = "hunter2-Zq8!kPx"')


def test_an_edit_outside_the_text_or_of_a_thousand_lines_is_not_wanted():
    desk = HistoryDesk(a=CODE)
    assert not is_wanted(desk.documents.parsed(A), 10, len(CODE) + 1, "x", [])
    assert not wanted(desk, "load(name)", "x\n" * MAX_EDIT_CHARS)


def test_the_likeliest_places_are_rewritten_at_once_and_the_first_is_offered():
    desk = RewriteDesk()
    desk.places = [desk.place(line, 0.3) for line in (5, 1, 4, 2)]
    [offer] = desk.found()
    assert [each.line for each in desk.asked] == [5, 1, 4]
    assert offer.text == "load(name, 1)"
