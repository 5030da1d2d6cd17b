"""Which open documents may be shown with others is decided beside the event loop, and never by rules of before."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from lsprotocol import types

from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.context.workspace import Workspace
from mercury_lsp.context.workspace.library import Library
from mercury_lsp.documents.roots import Roots


class Held:
    """Holds the background thread right after it has decided, before it says what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.has_decided, self.go_on = Event(), Event()
        allows = Library.allows

        def held(library: Library, path: str) -> bool:
            found = allows(library, path)
            self.has_decided.set()
            assert self.go_on.wait(60)
            return found

        monkeypatch.setattr(Library, "allows", held)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    documents = OpenDocuments()
    documents.roots = Roots([tmp_path])
    documents.open(types.TextDocumentItem(uri(tmp_path), "python", 1, "x = 1\n"))
    made = Workspace(documents)
    yield made
    made.close()


def uri(folder: Path) -> str:
    return (folder / "a.py").as_uri()


def decided(workspace: Workspace) -> None:
    while workspace._deciding is not None and not workspace._deciding.done():
        asyncio.run(workspace.decided())


def test_until_the_ignore_files_are_read_a_document_is_not_shown_and_nobody_waits(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    held = Held(monkeypatch)
    workspace.enable(True, client_watches=True)
    assert held.has_decided.wait(60) and not workspace.may_use(uri(tmp_path))
    held.go_on.set()
    decided(workspace)
    assert workspace.may_use(uri(tmp_path))


def test_a_decision_by_rules_that_have_changed_meanwhile_does_not_count(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    held = Held(monkeypatch)
    workspace.enable(True, client_watches=True)
    assert held.has_decided.wait(60)  # a.py may be shown; that is about to be stored
    (tmp_path / ".gitignore").write_text("a.py\n")
    workspace.files_changed([tmp_path / ".gitignore"])
    assert not workspace.may_use(uri(tmp_path))
    held.go_on.set()
    decided(workspace)
    assert not workspace.may_use(uri(tmp_path))


def test_a_changed_exclude_file_counts_while_other_files_are_not_used(workspace: Workspace, tmp_path: Path):
    (tmp_path / ".git" / "info").mkdir(parents=True)
    assert workspace.is_ignored(uri(tmp_path))  # not known yet
    decided(workspace)
    assert not workspace.is_ignored(uri(tmp_path))
    (tmp_path / ".git" / "info" / "exclude").write_text("a.py\n")
    workspace.files_changed([tmp_path / ".git" / "info" / "exclude"])
    assert workspace.is_ignored(uri(tmp_path))
    decided(workspace)
    assert workspace.is_ignored(uri(tmp_path))
