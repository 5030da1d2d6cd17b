"""Which rewritten lines are offered: the cursor's region first, by key new errors, and never against the user."""

import asyncio
from threading import Event

import pytest
from mercury_engine.api import REGION_LINES_BELOW
from mercury_engine.errors import Cancelled

from mercury_lsp.completion.coalescing import Coalescer
from mercury_lsp.completion.next_edits.filters import objection, strays
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.next_edits import NextEdits
from mercury_lsp.completion.next_edits.places import Place, named_place
from mercury_lsp.completion.next_edits.proposals import Question
from mercury_lsp.completion.next_edits.region_edits import MIN_PROBABILITY, MIN_RELATED_PROBABILITY
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit, Snapshot
from tests.server.completion.test_history import A, B, HistoryDesk

CODE = "def load(path):\n    return read(path)\n\n\ndef show(name):\n    text = load(name)\n    return text\n"


FAR = CODE + "\n" * 30 + "print(fetch(1))\n"
"""The last line is out of the cursor's region."""


class RewriteDesk(HistoryDesk):
    """A user whose function got an argument, and a model that rewrites its calls."""

    def __init__(self, *changes: tuple[str, str, float], text: str = CODE) -> None:
        super().__init__(a=text)
        self.replace("load(path)", "load(path, count)")
        self.asked: list[Place] = []
        self.next_edits = NextEdits(Coalescer())
        self.next_edits.regions.rewrite = self.rewrite
        self.changes = changes or (("load(name)", "load(name, count)", 0.9),)
        self.errors: frozenset[int] = frozenset()

    async def rewrite(self, region: Place, history: object, enough: float, cancel: Event) -> list[RewrittenLines]:
        if cancel.is_set():
            raise Cancelled("as the engine does")
        self.asked.append(region)
        source, found = region.snapshot.source, []
        start, end = (source.offset_at(line, 0) for line in (region.start_line, region.end_line))
        for old, new, probability in self.changes:
            if (at := region.snapshot.slice(start, end).find(old)) >= 0:
                found.append(RewrittenLines(Edit(start + at, old, new), probability))
        return found

    def found(self, invoked: bool = False, cursor: int = 0) -> list[Suggestion]:
        return asyncio.run(self.next_edits.find(self.question(None if invoked else cursor), "edit"))

    def question(self, cursor: int | None) -> Question:
        hunks = self.history.hunks()
        return Question(self.documents.parsed(A), "a.py", hunks, cursor, errors=lambda _: self.errors)

    def inserted(self, cursor: int, pauses: bool) -> list[Suggestion]:
        """The next edit as ghost text, for a user who pauses or types on."""

        async def has_paused() -> bool:
            return pauses

        return asyncio.run(self.next_edits.insertion(self.question(cursor), has_paused))

    @property
    def silence(self) -> str:
        return "; ".join(self.next_edits.reasons(A))


def why_not(desk: HistoryDesk, old: str, new: str) -> str | None:
    at = desk.text().index(old)
    return objection(desk.documents.parsed(A), Edit(at, old, new), desk.history.hunks())


def wanted(desk: HistoryDesk, old: str, new: str) -> bool:
    return why_not(desk, old, new) is None


# The region at hand


@pytest.mark.parametrize("invoked", [False, True])
def test_the_region_at_hand_is_rewritten_without_a_likely_place(invoked):
    desk = RewriteDesk()
    [offer] = desk.found(invoked)
    assert (offer.text, offer.start, offer.end, offer.source) == ("load(name, count)", (5, 11), (5, 21), "region")
    assert [(each.start_line, each.end_line) for each in desk.asked] == [(0, REGION_LINES_BELOW + 1)]


def test_the_first_lines_that_are_likely_enough_are_offered():
    desk = RewriteDesk(
        ("def show(name)", "def show(key)", MIN_PROBABILITY / 2), ("load(name)", "load(name, count)", 0.7)
    )
    [offer] = desk.found()
    assert (offer.text, offer.confidence) == ("load(name, count)", 0.7)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            ("load(name)", "load(name, count)", MIN_PROBABILITY / 2),
            "line 6: the model's edit is not shown, its probability",
        ),
        (("    text", "        text", 0.9), "it only moves blanks"),
        (("nowhere", "nothing", 0.9), "lines 1 to 8: the model changes nothing"),
        (("load(path, count)", "load(path)", 0.9), "it does something else than your changes"),
        (("load(name)", "load(name, count", 0.9), "it does something else"),
        (("    return read(path)\n", "", 0.9), "it removes lines, and you did not"),
    ],
    ids=["unlikely", "blanks", "nothing", "back", "broken", "fewer lines"],
)
def test_silence_has_a_reason(change, reason):
    desk = RewriteDesk(change)
    assert desk.found() == []
    assert reason in desk.silence


@pytest.mark.parametrize(("probability", "unasked"), [(0.5, 1), (0.1, 0), (1.0, 1)])
def test_the_edit_of_a_model_made_for_edits_is_shown_if_it_pays_and_always_by_key(probability, unasked):
    desk = RewriteDesk(("    text = load(name)\n", "    text = name.read()\n", probability))
    desk.next_edits.regions.writes_edits = lambda: True
    assert len(desk.found()) == unasked
    assert [each.confidence for each in desk.found(invoked=True)] == [probability]


# Lines with errors


def test_by_key_a_line_in_which_an_error_appeared_is_rewritten():
    desk = RewriteDesk(("fetch(1)", "fetch(1, count)", 0.9), text=FAR)
    desk.errors = frozenset({37})
    assert desk.found() == [] and len(desk.asked) == 1
    found = desk.found(invoked=True)
    assert [each.line for each in desk.asked[2:]] == [37]
    assert [(each.text, each.source) for each in found] == [("fetch(1, count)", "region")]


# Related regions


CALL = FAR.replace("fetch", "load")
"""The last line calls the function that got an argument."""


@pytest.mark.parametrize(
    "change",
    [
        ("load(1)", "load(1, count)", MIN_RELATED_PROBABILITY - 0.1),
        ("x = y(1)", "x = y(1, count)", 0.9),
        ("nowhere", "", 0.9),
    ],
    ids=["unsure", "another line", "nothing"],
)
def test_of_a_related_region_only_a_sure_edit_in_its_line_is_offered_and_it_is_asked_about_once(change):
    desk = RewriteDesk(change, text=CALL + "x = y(1)\n")
    assert desk.found() == [] and [each.line for each in desk.asked] == [0, 37]
    assert desk.found() == [] and [each.line for each in desk.asked] == [0, 37, 0]


def test_a_name_that_the_change_took_away_is_looked_for_first_in_its_document_then_in_others():
    desk = HistoryDesk(a="old_name = 1\n" + "\n" * 30 + "f(old_name)\ng(old_name)\n", b="\nh(old_name)\n")
    desk.replace("old_name = 1", "new_name = 1")
    documents = [(desk.documents.parsed(uri), uri) for uri in (A, B)]

    def related(*documents: tuple[Snapshot, str]) -> tuple[str, int] | None:
        found = named_place(documents, desk.history.hunks(), [])
        return None if found is None else (found.path, found.line)

    assert related(*documents) == (A, 31) and related(documents[1]) == (B, 1)
    assert named_place(documents[:1], [], []) is None


# Never


def test_what_reverts_the_user_is_not_wanted():
    desk = HistoryDesk(a=CODE).replace("load(path)", "load(path, count)")
    assert not wanted(desk, "def load(path, count):\n", "def load(path):\n")
    desk = HistoryDesk(a=CODE).replace("text = load(name)", "shown = load(name)")
    assert wanted(desk, "return text", "return shown")
    assert not wanted(desk, "shown = load", "text = load")


def test_lines_that_look_like_secrets_are_not_touched():
    desk = HistoryDesk(a=CODE + 'password = "hunter2-Zq8!kPx"\n')
    assert not wanted(desk, "password", "passphrase")
    assert not wanted(desk, "text = load(name)", 'password = "hunter2-Zq8!kPx"')


@pytest.mark.parametrize(
    ("old", "new", "is_like"),
    [
        ("a = load(x)\n", "a = load(x, count)\n", True),
        ("a = load(x)\n", "a = read(x)\n", False),
        ("a = load(x)\n", "a = load((x))\n", False),
        ("a = 1\nb = 2\n", "a = count\n", False),
    ],
    ids=["the word added", "another word", "brackets only", "fewer lines"],
)
def test_a_models_edit_follows_from_the_users_changes(old, new, is_like):
    hunks = HistoryDesk(a=CODE).replace("load(path)", "load(path, count)").history.hunks()
    assert (strays(old, new, hunks) is None) is is_like


@pytest.mark.parametrize(("word", "is_like"), [("buffers", True), ("windows", False)])
def test_a_models_text_may_name_what_stands_in_its_own_line(word: str, is_like: bool):
    def mapped(name: str, found: str) -> str:
        return f'map("{name}", {{ noremap = true, desc = "Find {found}" }})\n'

    files, buffers = 'map("Files", { noremap = true })\n', 'map("Buffers", { noremap = true })\n'
    hunks = [Hunk("file:///a.lua", "a.lua", "lua", 0, files, mapped("Files", "files"))]
    assert (strays(buffers, mapped("Buffers", word), hunks) is None) is is_like


TODO, GET = "x = todo()  # /a\n", 'x = client.get("/a", timeout=5)  # /a\n'


@pytest.mark.parametrize(
    ("change", "old", "new", "why"),
    [
        (("print('a:', a)\n", "print(f'a: {a}')\n"), "print('b:', b)\n", "print(f'b: {b}')\n", None),
        (("print('a:', a)\n", "print(f'a: {a}')\n"), "print('b:', b)\n", "print(f'b: {a}')\n", "copies words"),
        (("print('a:', a)\n", "print(f'a: {a}')\n"), "log('b:', b)\n", "log(f'b: {b}')\n", None),
        (("print('a:', a)\n", "print(f'a: {a}')\n"), "print('b:', b, c)\n", "print(f'b: {b}')\n", "something else"),
        ((TODO, GET), "y = todo()  # /b\n", 'y = client.get("/b", timeout=5)  # /b\n', None),
        ((TODO, GET), "y = todo()  # /b\n", 'y = client.get("/a", timeout=5)  # /b\n', "copies words"),
        (("get('/a')\n", "get('/a', 5)\n"), "get('/b')\n", "get('/a', 5)\n", "something else"),
        (("x = 1\n", "x = 2\n"), "y = 7\n", "y = 2\n", "something else"),
    ],
    ids=[
        "own words",
        "the user's word",
        "another call",
        "fewer words",
        "own path",
        "the user's path",
        "argument",
        "value",
    ],
)
def test_a_line_becomes_what_one_like_it_became_with_its_own_words(change, old, new, why):
    reason = strays(old, new, [Hunk(A, "a.py", "python", 0, *change)], 0.58)
    assert reason is None if why is None else why in (reason or "")


TYPED = "    log(reponse)\n"


@pytest.mark.parametrize(
    ("new", "probability", "rest", "is_shown"),
    [
        ("    log(response)\n", 0.9, "response = get()\n", True),
        ("    log(response)\n", 0.5, "response = get()\n", False),
        ("    log(response)\n", 0.9, "", False),
        ("    log(response)\n", 0.9, "response = reponse\n", False),
        ("    log(request)\n", 0.9, "request = get()\n", False),
    ],
    ids=["sure", "unsure", "the right word is new", "both words are known", "another word"],
)
def test_a_word_mistyped_by_the_user_is_corrected_to_one_that_stands_in_the_document(new, probability, rest, is_shown):
    made = [Hunk(A, "a.py", "python", 1, "", TYPED)]
    assert (strays(TYPED, new, made, probability, rest + TYPED) is None) is is_shown
