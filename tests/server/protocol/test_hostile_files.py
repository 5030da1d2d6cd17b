"""A repository whose files are pipes, devices or endless costs its own context, and never an answer."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.editor import Editor, script, span

NOTES = "def reserve_items(basket):\n    return basket\n"
MAIN = script(text="1 + 2") + "x = "

Plant = Callable[[Path], None]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse_gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


def too_many_rules(path: Path) -> None:
    path.write_text("".join(f"rule_{number}\n" for number in range(120_000)))


def endless_rule(path: Path) -> None:
    path.write_text("*a" * 100_000)


def includes_itself(path: Path) -> None:
    path.write_text(f"[include]\n\tpath = {path.name}\n\tpath = {path.name}\n")


def workspace(root: Path) -> Path:
    """A repository in which `notes.py` is shown with `main.py`."""
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    settings = f"[include]\n\tpath = included\n[core]\n\texcludesFile = {root.as_posix()}/excluded\n"
    (root / ".git" / "config").write_text(settings)
    (root / "sub").mkdir()
    for name, text in {"notes.py": NOTES, "sub/notes.py": NOTES, "main.py": MAIN}.items():
        (root / name).write_text(text)
    return root


def edited(editor: Editor, path: Path, text: str = NOTES) -> None:
    """Open a document and insert a line."""
    editor.open(path.as_uri(), text)
    editor.change(path.as_uri(), 2, {"range": span((0, 0), (0, 0)), "text": "limit = 12\n"})


def answers(editor: Editor, main: Path) -> bool:
    editor.open(main.as_uri(), MAIN)
    [item] = editor.items(main.as_uri(), 1, 4)
    return item["insertText"].endswith("1 + 2")


def warnings(editor: Editor) -> list[str]:
    """The warnings and errors in the log so far."""
    editor.receive_all()
    return [each["message"] for each in editor.received("window/logMessage") if each["type"] <= 2]


def the_warning(editor: Editor) -> str:
    """The only warning, which comes once everything asked for is decided."""
    while not (said := warnings(editor)):
        pass
    [only] = said
    return only


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize(
    ("name", "plant"),
    [
        *((name, pipe) for name in (".gitignore", ".mercuryignore", ".git/config", ".git/info/exclude")),
        *((name, pipe) for name in (".git/included", ".git/commondir", "excluded")),
        *((name, endless_device) for name in (".git/config", ".git/included", "excluded")),
        *((name, sparse_gigabyte) for name in (".gitignore", ".git/config", "excluded")),
        (".gitignore", too_many_rules),
        (".gitignore", endless_rule),
        (".git/config", includes_itself),
    ],
)
def test_an_odd_file_is_not_read_and_named_once(tmp_path: Path, name: str, plant: Plant):
    root = workspace(tmp_path)
    (root / name).unlink(missing_ok=True)
    plant(root / name)
    with Editor() as editor:
        editor.initialize(None, {}, workspaceFolders=[{"uri": root.as_uri(), "name": "work"}])
        edited(editor, root / "notes.py")
        edited(editor, root / "sub" / "notes.py")
        for _ in range(2):
            assert answers(editor, root / "main.py")
        assert f"{root / name} is not read" in the_warning(editor)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
@pytest.mark.parametrize("plant", [pipe, sparse_gigabyte])
def test_an_odd_file_in_place_of_gits_folder_is_not_read(tmp_path: Path, plant: Plant):
    plant(tmp_path / ".git")
    with Editor() as editor:
        editor.initialize(None, {}, workspaceFolders=[{"uri": tmp_path.as_uri(), "name": "work"}])
        edited(editor, tmp_path / "notes.py")
        assert answers(editor, tmp_path / "main.py")
        assert f"{tmp_path / '.git'} is not read" in the_warning(editor)


@pytest.mark.parametrize("name", ["a%00b.py", "a\ud800b.py", "%ED%A0%80.py", "a%00b/.gitignore"])
def test_a_name_that_no_file_can_have_leaves_no_traceback(tmp_path: Path, name: str):
    root = workspace(tmp_path)
    uri = f"{root.as_uri()}/{name}"
    with Editor() as editor:
        editor.initialize(None, {}, workspaceFolders=[{"uri": each, "name": "work"} for each in (root.as_uri(), uri)])
        editor.open(uri, NOTES)
        editor.change(uri, 2, {"range": span((0, 0), (0, 0)), "text": "limit = 12\n"})
        editor.items(uri, 1, 4)
        editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
        assert answers(editor, root / "main.py")
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert warnings(editor) == []
