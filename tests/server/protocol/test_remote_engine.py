"""`mercury.engine` through the real server: who may name it, what is sent there, and what the editor is told."""

import json
import os
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from mercury_engine.api import Fill

from mercury_lsp.engine_host.remote import wire
from mercury_lsp.engine_host.remote.connection import MAX_MISSED
from mercury_lsp.plain_data import plain
from tests.support import tiny
from tests.support.editor import Editor
from tests.support.fake_remote import FakeRemote, Reply, Sent, elsewhere, says

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere"),
    tiny.needs_kernels,
]

SERVER = [sys.executable, "-m", "mercury_lsp", "--in-process"]

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYz8Kq0pLm4v"

KEY = "a-key-of-the-users"

REMOTE = Fill("elsewhere", 0.9, 1, 0.0, True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.folder(tmp_path_factory.mktemp("models") / "here", rank=0, **tiny.WIDE)


def serving() -> FakeRemote:
    about, answer = plain(wire.About("elsewhere")), says({"answer": plain(REMOTE)})
    return FakeRemote({f"GET {wire.PATH}": says(about), f"POST {wire.PATH}": answer})


def opened(model: Path, variable: str, folder: Path | None = None, **settings: Any) -> Editor:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MERCURY_ENGINE": variable, "MERCURY_API_KEY": KEY}
    folders = {"workspaceFolders": [{"uri": folder.as_uri(), "name": "work"}]} if folder is not None else {}
    editor = Editor(None, SERVER, env=environment).initialize({}, {"model": str(model), **settings}, **folders)
    editor.until(lambda: any(line.startswith("loaded ") for line in said(editor)))
    return editor


def said(editor: Editor) -> list[str]:
    shown = ("window/logMessage", "window/showMessage")
    return [params["message"] for method, params in editor.notices if method in shown]


def status(editor: Editor) -> dict[str, Any]:
    return editor.request("mercury/status", {})


def test_the_engine_that_the_environment_names_answers_and_the_local_model_once_it_is_gone(model: Path):
    with serving() as remote, opened(model, remote.url) as editor:
        uri = editor.opened("x = ")
        assert [item["insertText"] for item in editor.items(uri, 0, 4, kind=1)] == ["elsewhere"]
        found = status(editor)
        assert (found["kind"], found["message"]) == ("Normal", f"{remote.url} answers")
        assert found["engine"] == {"name": "elsewhere", "device": f"remote at {remote.url}", "backend": "remote"}
        remote.close()
        editor.items(uri, 0, 3, kind=1)
        found = status(editor)
        assert found["kind"] == "Warning" and f"{remote.url} does not answer" in found["message"]
        assert editor.items(uri, 0, 2, kind=1) is not None and status(editor)["engine"]["backend"] != "remote"
        assert KEY not in json.dumps(editor.notices)
    assert all(sent.headers["Authorization"] == f"Bearer {KEY}" for sent in remote.sent)


def test_each_key_is_answered_while_the_engine_is_silent_and_then_the_local_model_takes_over(model: Path):
    ended, about = Event(), plain(wire.About("elsewhere"))

    def silent(sent: Sent) -> Reply | None:
        ended.wait()
        return None

    with (
        FakeRemote({f"GET {wire.PATH}": says(about), f"POST {wire.PATH}": silent}) as remote,
        opened(model, remote.url) as editor,
    ):
        uri = editor.opened("x = ")
        for column in range(MAX_MISSED + 1):
            assert editor.items(uri, 0, column, kind=1) is not None
        found = status(editor)
        assert found["kind"] == "Warning" and f"{remote.url} does not answer" in found["message"]
        assert len(remote.posted(wire.PATH)) == MAX_MISSED
        ended.set()


def test_no_secret_is_sent(model: Path, tmp_path: Path):
    (tmp_path / "other.py").write_text(f'def area(width):\n    return 1\n\nTOKEN = "{SECRET}"\n')
    (tmp_path / ".env").write_text(f"PASSWORD={SECRET}\n")
    text = f'from other import area\n\nAWS_SECRET_ACCESS_KEY = "{SECRET}"\npassword = "hunter2Zx9"\n\nx = area('
    with serving() as remote, opened(model, remote.url, tmp_path, waitForContext=True) as editor:
        uri = (tmp_path / "main.py").as_uri()
        editor.open(uri, text)
        editor.items(uri, 5, 9, kind=1)
        editor.items(uri, 3, 20, kind=1)
        editor.items(uri, 5, 4)
    sent = b"".join(each.content for each in remote.sent)
    assert b"area(" in sent and b"def area" in sent
    assert SECRET.encode() not in sent and b"hunter2" not in sent and KEY.encode() not in sent


@pytest.mark.parametrize("settings", [{}, {"workspaceContext": False}], ids=["", "without other files"])
@pytest.mark.parametrize("ignore_file", [".gitignore", ".mercuryignore"])
def test_the_local_model_answers_in_a_file_that_is_ignored(
    model: Path, tmp_path: Path, ignore_file: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("no_proxy", "*")
    (tmp_path / ignore_file).write_text("private/\n*.local.py\n")
    with serving() as remote, opened(model, elsewhere(remote), tmp_path, **settings) as editor:
        for path in ("private/a.py", "b.local.py", ".hidden/c.py", "d.py"):
            editor.open((tmp_path / path).as_uri(), "x = ")
            texts = [item["insertText"] for item in editor.items((tmp_path / path).as_uri(), 0, 4, kind=1)]
            is_ignored = path.startswith(("private", "b"))
            assert ("elsewhere" in texts) != is_ignored
            assert len(remote.posted(wire.PATH)) == ("hidden" in path) + 2 * (path == "d.py")


def test_a_file_is_no_longer_sent_once_it_is_ignored(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("no_proxy", "*")
    rules, uri = tmp_path / ".gitignore", (tmp_path / "a.py").as_uri()
    with serving() as remote, opened(model, elsewhere(remote), tmp_path, workspaceContext=False) as editor:
        editor.open(uri, "x = ")
        assert [item["insertText"] for item in editor.items(uri, 0, 4, kind=1)] == ["elsewhere"]
        rules.write_text("a.py\n")
        editor.open(rules.as_uri(), "a.py\n", "ignore")
        editor.notify("textDocument/didSave", {"textDocument": {"uri": rules.as_uri()}})
        assert "elsewhere" not in [item["insertText"] for item in editor.items(uri, 0, 3, kind=1)]
        assert len(remote.posted(wire.PATH)) == 1


def test_a_repository_names_no_engine(model: Path):
    with serving() as remote, serving() as theirs, opened(model, remote.url, engine=theirs.url) as editor:
        assert any(f"{theirs.url} is not used" in line and "MERCURY_ENGINE" in line for line in said(editor))
        uri = editor.opened("x = ")
        editor.items(uri, 0, 4, kind=1)
    assert theirs.sent == []
