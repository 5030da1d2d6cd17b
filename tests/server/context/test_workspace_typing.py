"""Typing beside snippets of other files."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from lsprotocol import types
from mercury_lab.engine import Engine

from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.context.workspace import Workspace
from mercury_lsp.documents.roots import Roots
from tests.support import tiny

MAIN = "from stock import reserve_items, release_items\n\n\ndef checkout(basket, customer):\n    \n    return basket\n"
NAMES = ("reserve_items", "release_items")
STOCK = "".join(f"def {name}(basket, customer):\n    return {name!r}\n\n" for name in NAMES)
LINE = "reserved = reserve_items(basket, release_items(customer))"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("typing") / "model"))


def test_typing_beside_snippets_prefills_at_most_two_tokens_per_key(engine: Engine, tmp_path: Path):
    (tmp_path / "stock.py").write_text(STOCK)
    uri = (tmp_path / "main.py").as_uri()
    documents = OpenDocuments()
    documents.roots = Roots([tmp_path])
    documents.open(types.TextDocumentItem(uri, "python", 1, MAIN))
    workspace = Workspace(documents)
    workspace.enable(True, client_watches=True)

    def context(column: int):
        return workspace.with_snippets(*documents.context_at(uri, types.Position(4, column)))

    read = []
    try:
        deadline = time.monotonic() + 60
        while not context(4).snippets and time.monotonic() < deadline:
            time.sleep(0.05)
        for column, character in enumerate(LINE, 4):
            place = types.Position(4, column)
            edit = types.TextDocumentContentChangePartial(range=types.Range(place, place), text=character)
            workspace.edited(uri, documents.change(uri, column, [edit]))
            if column == 20:
                workspace.prepare(uri)
            asked = context(column + 1)
            assert "reserve_items" in asked.snippets[0]
            read.append(engine.fill(replace(asked.request(), max_slots=1, max_steps=1)).tokens_read)
    finally:
        workspace.close()
    assert max(read[1:]) <= 2


PRICES = "def reserve_price(basket, customer):\n    return 1\n"
IMPORTED = "from prices import reserve_price\nfrom stock import reserve_items\n\n\ndef f(basket, customer):\n    \n"


@pytest.mark.parametrize("ignore_file", [".gitignore", ".mercuryignore", ".git/info/exclude"])
def test_snippets_chosen_before_an_ignore_file_changed_are_gone_at_once(tmp_path: Path, ignore_file: str):
    (tmp_path / ".git" / "info").mkdir(parents=True)
    for name, text in {"stock.py": STOCK, "prices.py": PRICES}.items():
        (tmp_path / name).write_text(text)
    uri = (tmp_path / "main.py").as_uri()
    documents = OpenDocuments()
    documents.roots = Roots([tmp_path])
    documents.open(types.TextDocumentItem(uri, "python", 1, IMPORTED))
    workspace = Workspace(documents)
    workspace.enable(True, client_watches=True)

    def shown() -> str:
        found = workspace.with_snippets(*documents.context_at(uri, types.Position(5, 4)))
        return "".join((*found.snippets, *found.lookup_text))

    try:
        while "reserve_items" not in shown():
            time.sleep(0.01)
        (tmp_path / ignore_file).write_text("stock.py\n")
        workspace.files_changed([tmp_path / ignore_file])
        while "reserve_price" not in (now := shown()):
            assert "reserve_items" not in now
            time.sleep(0.001)
        for _ in range(100):
            assert "reserve_items" not in shown()
            time.sleep(0.001)
    finally:
        workspace.close()
