"""The question of our plugins whether to download a larger model; a script stands for the download."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.server.configuration import AGAIN_SECONDS
from tests.support.editor import COMMAND, Editor
from tests.support.neovim import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere")

OURS = {"experimental": {"mercury": {"offers": True, "status": True}}}

OFFER = {"name": "large", "question": "Download large (0.5 GB, MIT)?"}

SCRIPT = """
import pathlib, sys
pathlib.Path(__file__).with_name("ran").touch()
choice = pathlib.Path({user!r}) / "default-model"
if sys.argv[1:] != ["add"]:
    print({offer!r}, end="")
elif {fails}:
    print("downloading large: 10 %")
    print("the disk is full; free some space")
    sys.exit(2)
else:
    print("downloading large: 10 %", flush=True)
    print("downloading large: 90 %", flush=True)
    choice.write_text("large\\n")
"""


class User:
    """A home, and the editors of its owner."""

    def __init__(self, home: Path):
        self.home = home
        self.folder = home / "mercury-lsp"
        self.folder.mkdir()
        self.asked = self.folder / "larger-model"
        self.script()

    def script(
        self, offer: str = '{"name": "large", "question": "Download large (0.5 GB, MIT)?"}', fails: bool = False
    ):
        text = SCRIPT.format(user=str(self.folder), offer=offer, fails=fails)
        (self.home / "larger.py").write_text(text)

    def editor(self, capabilities: Any = OURS, options: Any = None) -> Editor:
        command = [*COMMAND, "--larger", str(self.home / "larger.py")]
        environment = os.environ | {"XDG_DATA_HOME": str(self.home)}
        return Editor(command=command, env=environment).initialize(capabilities, options or {})


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def is_asked(editor: Editor) -> bool:
    """Whether the question came soon after the model was loaded; it is decided before a process is started."""
    editor.until(lambda: any(each["message"] == "" for each in editor.received("didChangeStatus")))
    for _ in range(40):
        editor.receive_all()
    return bool(editor.received("mercury/offerModel"))


def answer(editor: Editor, *words: str) -> None:
    editor.request("workspace/executeCommand", {"command": "mercury.answerOffer", "arguments": [*words]})


def test_our_plugins_are_asked_once_after_the_bundled_model_was_loaded(user: User):
    with user.editor() as editor:
        assert editor.wait_for("mercury/offerModel") == OFFER
        order = [method for method, _ in editor.notices if method in ("didChangeStatus", "mercury/offerModel")]
        assert order[-1] == "mercury/offerModel" and editor.received("didChangeStatus")[-1]["message"] == ""
    with user.editor() as editor:
        assert not is_asked(editor)


def test_other_editors_are_not_asked_and_get_no_command(user: User):
    with user.editor({"experimental": {"mercury": {"status": True}}}) as editor:
        assert not is_asked(editor)
        assert "mercury.answerOffer" not in editor.capabilities["executeCommandProvider"]["commands"]
    assert not user.asked.exists(), "our plugins can still ask"


@pytest.mark.parametrize("choice", ["bundled", "mine"])
def test_who_has_chosen_a_model_is_not_asked(user: User, choice: str):
    (user.folder / "default-model").write_text(f"{choice}\n")
    with user.editor() as editor:
        assert not is_asked(editor)


def test_where_there_is_nothing_to_offer_nobody_is_asked_and_nothing_is_kept(user: User):
    user.script(offer="")
    with user.editor() as editor:
        until((user.home / "ran").exists)
        assert not is_asked(editor)
    assert not user.asked.exists()


def test_who_said_never_is_not_asked_again_and_who_said_not_now_is_after_two_weeks(user: User):
    with user.editor() as editor:
        editor.wait_for("mercury/offerModel")
        answer(editor, "notNow")
    long_ago = user.asked.stat().st_mtime - AGAIN_SECONDS - 1
    os.utime(user.asked, (long_ago, long_ago))
    with user.editor() as editor:
        editor.wait_for("mercury/offerModel")
        answer(editor, "never")
    os.utime(user.asked, (long_ago, long_ago))
    with user.editor() as editor:
        assert not is_asked(editor)


def test_after_yes_the_download_is_in_the_status_and_the_model_is_changed_without_a_restart(user: User):
    with user.editor() as editor:
        editor.wait_for("mercury/offerModel")
        answer(editor, "yes")
        editor.until(lambda: editor.request("mercury/status", {})["model"] == "large")
        editor.until(lambda: editor.received("didChangeStatus")[-1]["message"] == "")
        said = [each["message"] for each in editor.received("didChangeStatus")]
    whole = ["downloading large: 10 %", "downloading large: 90 %", "", "loading the model", ""]
    assert said[-5:] == whole
