"""Next edits by a model of edits on a server, from the keystroke over HTTP to applied text."""

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.support import tiny
from tests.support.edit_server import (
    CHAT,
    COMPLETIONS,
    KEY,
    Desk,
    completes,
    completes_with,
    llama_probabilities,
    opened,
    replies,
    said,
    serving,
    silent_until,
    vllm_probabilities,
)
from tests.support.editor import Editor
from tests.support.fake_remote import FakeRemote, elsewhere

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere"),
    tiny.needs_kernels,
]

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYz8Kq0pLm4v"

CODE = """\
def area(side):
    return side * side


def volume(side):
    return area(side) * side


print(volume(2))
"""
TYPED = CODE.replace("def area(side)", "def area(width, height)")
FIRST = TYPED.replace("return side * side", "return width * height")
BOTH = FIRST.replace("area(side) * side", "area(side, side) * side")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder(tmp_path_factory.mktemp("models") / "here", rank=0, **tiny.WIDE)


@pytest.fixture
def zeta(model: Path) -> Iterator[tuple[FakeRemote, Desk]]:
    """A server with Zeta 2 that makes two edits at once, and a user who has changed a header."""
    with serving(completes(BOTH)) as remote, opened(model, f"{remote.url}#zeta-2") as editor:
        desk = Desk(editor, CODE)
        desk.replace("area(side)", "area(width, height)")
        yield remote, desk


def test_an_answer_is_taken_edit_by_edit_and_asked_for_once(zeta: tuple[FakeRemote, Desk]):
    remote, desk = zeta
    assert desk.take(0, 10) and desk.text == FIRST
    assert len(remote.posted(COMPLETIONS)) == 1
    assert desk.take(1, 25) and desk.text == BOTH
    assert not desk.take(6, 0) and desk.text == BOTH  # asked while the user looked, the model changes nothing
    assert len(remote.posted(COMPLETIONS)) == 2


def asked(remote: FakeRemote, editor: Editor, times: int) -> None:
    """Wait until the server has been asked so many times."""
    while len(remote.sent) < times:
        editor.request("mercury/status", {})


def test_what_was_asked_ahead_is_of_no_use_once_the_user_types_something_else(model: Path):
    with serving(completes(FIRST, BOTH)) as remote, opened(model, f"{remote.url}#zeta-2") as editor:
        desk = Desk(editor, TYPED)
        assert desk.asked(0, 10)
        asked(remote, editor, 2)
        desk.replace("print(volume(2))", "print(volume(3))")
        desk.asked(0, 10)
        assert "volume(3)" in remote.posted(COMPLETIONS)[2]["prompt"]


def test_a_server_that_may_cost_money_is_not_asked_ahead(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving(completes(FIRST)) as remote, opened(model, f"{elsewhere(remote)}#zeta-2") as editor:
        desk = Desk(editor, TYPED)
        assert desk.take(0, 10) and len(remote.posted(COMPLETIONS)) == 1
        assert not desk.take(1, 25) and len(remote.posted(COMPLETIONS)) == 2


def test_the_server_is_sent_the_familys_prompt_and_its_own_key(zeta: tuple[FakeRemote, Desk]):
    remote, desk = zeta
    desk.asked(0, 9)
    [sent] = [each for each in remote.sent if each.method == "POST"]
    assert sent.body["prompt"].startswith("<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n--- a/")
    assert "+def area(width, height):" in sent.body["prompt"]
    assert "def area(<|user_cursor|>width, height):" in sent.body["prompt"]
    assert (sent.body["model"], sent.body["temperature"]) == ("zeta-2", 0)
    assert sent.headers["Authorization"] == f"Bearer {KEY}"


def test_a_family_that_chats_is_asked_by_chat_and_one_whose_name_tells_nothing_by_its_format(model: Path):
    with (
        serving(replies(f"```python\n{FIRST}```"), CHAT) as remote,
        opened(model, f"{remote.url}?format=instinct#my-tune") as editor,
    ):
        desk = Desk(editor, TYPED)
        assert desk.take(0, 10) and desk.text == FIRST
    assert remote.sent[0].body["model"] == "my-tune"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (TYPED, "the model changes nothing"),
        ("NO_EDITS\n", "the model changes nothing"),
        (CODE, "it undoes a change of yours"),
        (TYPED.replace("side * side\n", "side  *  side\n", 1), "it only moves blanks"),
        (TYPED.replace("return side * side", "return (side * side"), "it breaks the syntax"),
        (TYPED.replace("    return side * side\n", "    <filename>\n"), "the model changes nothing"),
        (
            TYPED.replace("print(volume(2))\n", "print(volume(2))\nprint(volume(2))\n"),
            "it repeats what is there",
        ),
        (TYPED.replace("print(volume(2))", f'API_KEY = "{SECRET}"'), "its lines look like secrets"),
        ("def area(width, height):\n    return 1\nprint(volume(2))\n", "it removes 6 of 9 lines"),
    ],
    ids=["same", "no-edits", "undo", "blanks", "syntax", "sentinel", "double", "secret", "removal"],
)
def test_an_edit_that_would_do_harm_is_not_shown(model: Path, answer: str, why: str):
    with serving(completes(answer)) as remote, opened(model, f"{remote.url}#zeta-2") as editor:
        desk = Desk(editor, CODE)
        desk.replace("area(side)", "area(width, height)")
        assert not desk.take(0, 10)
        assert why in desk.explained()
        assert len(remote.posted(COMPLETIONS)) == 1


def tokens_of(text: str, sure: float) -> list[tuple[str, float]]:
    """Its lines as tokens, all certain but the changed one, and the token that ends an answer."""
    lines = text.splitlines(keepends=True)
    return [*((line, sure if "width *" in line else 1.0) for line in lines), (">>>>>>> UPDATED", 1.0)]


@pytest.mark.parametrize("told", [llama_probabilities, vllm_probabilities], ids=["llama-server", "vLLM"])
@pytest.mark.parametrize(("sure", "is_shown"), [(0.5, True), (0.1, False)])
def test_an_unlikely_edit_is_not_shown_where_the_server_tells_probabilities(model, told, sure, is_shown):
    with (
        serving(completes_with(told(tokens_of(FIRST, sure)), FIRST)) as remote,
        opened(model, f"{remote.url}#zeta-2") as editor,
    ):
        desk = Desk(editor, TYPED)
        assert bool(desk.asked(0, 10)) is is_shown
        assert remote.posted(COMPLETIONS)[0]["logprobs"] == 1
        assert is_shown or "its probability is 0.10, below " in desk.explained()


def test_no_secret_is_sent(model: Path):
    far = "".join(f"value_{number} = {number}\n" for number in range(30))
    text = f'AWS_SECRET_ACCESS_KEY = "{SECRET}"\n{far}x = 1\n{far}password = "hunter2Zx9"\n'
    with serving(completes("NO_EDITS")) as remote, opened(model, f"{remote.url}#zeta-2") as editor:
        desk = Desk(editor, text)
        desk.asked(31, 3)
        assert len(remote.posted(COMPLETIONS)) == 1
        desk.asked(2, 0)
        assert len(remote.posted(COMPLETIONS)) == 1
        assert "must not see" in desk.explained()
    sent = b"".join(each.content for each in remote.sent)
    assert b"value_3" in sent and SECRET.encode() not in sent and b"hunter2" not in sent


def test_a_file_that_is_ignored_is_not_sent(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("no_proxy", "*")
    (tmp_path / ".gitignore").write_text("a.py\n")
    with serving(completes(FIRST)) as remote, opened(model, f"{elsewhere(remote)}#zeta-2") as editor:
        Desk(editor, TYPED, uri=(tmp_path / "a.py").as_uri()).asked(0, 10)
        assert remote.posted(COMPLETIONS) == []
        assert Desk(editor, TYPED, uri=(tmp_path / "b.py").as_uri()).take(0, 10)


def test_a_repository_names_no_server_for_edits(model: Path):
    with (
        serving(completes(FIRST)) as remote,
        serving(completes(FIRST)) as theirs,
        opened(model, f"{remote.url}#zeta-2", editModel=f"{theirs.url}#zeta-2") as editor,
    ):
        assert any("is not used" in line and "MERCURY_EDIT_ENGINE" in line for line in said(editor))
        Desk(editor, TYPED).asked(0, 10)
    assert theirs.sent == []


def test_rules_and_fills_do_not_wait_for_a_silent_server(model: Path):
    release = Event()
    with serving(silent_until(release.wait)) as remote, opened(model, f"{remote.url}#zeta-2") as editor:
        desk, other = Desk(editor, TYPED), Desk(editor, CODE)
        params = {"textDocument": {"uri": desk.uri, "version": 1}, "position": {"line": 0, "character": 10}}
        asked = editor.ask("textDocument/copilotInlineEdit", params)
        while not remote.sent:
            editor.items(other.uri, 1, 5, kind=1)  # fills are answered
        other.replace("def volume", "def content")
        assert other.take(4, 11) and "print(content(2))" in other.text
        assert asked not in editor.replies
        desk.replace("print(", "print(0, ")
        desk.asked(0, 11)  # supersedes the first one, which hangs up
        assert editor.result(asked) == {"edits": []}
        release.set()
