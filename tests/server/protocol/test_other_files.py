"""Context from beyond the file, as it reaches the engine."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Editor, span

MAIN = "from shop.stock import reserve_items\n\n\ndef checkout(basket):\n    reserve_items("
STOCK = "LIMIT = 12\n\n\ndef reserve_items(basket, warehouse_name):\n    return None\n"
WATCHES = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}


def written(root: Path, **files: str) -> Path:
    """Make a workspace; in file names `__` stands for a slash, and names without a dot get .py."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ("" if "." in name else ".py"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def serving(root: Path, capabilities: Any = None, **options: Any) -> Editor:
    folders = [{"uri": root.as_uri(), "name": "work"}]
    return Editor().initialize(capabilities, options, workspaceFolders=folders)


def given(editor: Editor, path: Path, line: int = 4, column: int = 18) -> str:
    """The engine's whole input at a position."""
    read, lookup_text = both(editor, path, line, column)
    return lookup_text + read


def both(editor: Editor, path: Path, line: int = 4, column: int = 18) -> tuple[str, str]:
    """What the engine reads at a position, and its lookup text."""
    editor.items(path.as_uri(), line, column, kind=1)
    given = editor.request("test/given", {})
    return "".join((*given["far"], given["near"], *given["suffix"])), "".join(given["elsewhere"])


def comes(editor: Editor, path: Path, holds: Callable[[str], bool]) -> bool:
    """Whether the engine's input fulfils the condition within seconds; edits lines so that snippets may change."""
    for number in range(100):
        if holds(given(editor, path, *((4, 18) if number % 2 else (3, 0)))):
            return True
        time.sleep(0.1)
    return False


def opened(editor: Editor, root: Path) -> list[str]:
    """The files below a folder that the server has opened."""
    return [name for name in editor.request("test/opened", {}) if name.startswith(str(root) + os.sep)]


def test_the_signature_of_an_imported_function_reaches_the_engine(tmp_path: Path):
    written(tmp_path, main=MAIN, shop__stock=STOCK)
    with serving(tmp_path) as editor:
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        signature = "# path: shop/stock.py\ndef reserve_items(basket, warehouse_name):\n"
        assert comes(editor, tmp_path / "main.py", lambda text: signature in text)


def test_switched_off_no_other_file_is_opened(tmp_path: Path):
    written(tmp_path, main=MAIN, shop__stock=STOCK)
    (tmp_path / ".gitignore").write_text("x")
    with serving(tmp_path, workspaceContext=False) as editor:
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        time.sleep(1)
        assert "warehouse_name" not in given(editor, tmp_path / "main.py")
        assert opened(editor, tmp_path) == []


def test_once_switched_off_no_other_file_is_shown(tmp_path: Path):
    written(tmp_path, main=MAIN, shop__stock=STOCK)
    with serving(tmp_path) as editor:
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        assert comes(editor, tmp_path / "main.py", lambda text: "warehouse_name" in text)
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {"workspaceContext": False}}})
        assert comes(editor, tmp_path / "main.py", lambda text: "warehouse_name" not in text)


@pytest.mark.parametrize(
    ("ignore_file", "pattern", "stock"),
    [
        (".gitignore", "stock.py", "shop/stock.py"),
        (".mercuryignore", "/shop/st*.py", "shop/stock.py"),
        ("shop/.gitignore", "*\n!other.py", "shop/stock.py"),
        (".git/info/exclude", "shop/st*", "shop/stock.py"),
        (None, "", "secrets.py"),
        (None, "", "shop/credentials.py"),
        (None, "", "node_modules/stock.py"),
        (None, "", ".venv/stock.py"),
    ],
)
def test_ignored_and_secret_files_are_never_opened(tmp_path: Path, ignore_file: str | None, pattern: str, stock: str):
    module = stock.removesuffix(".py").replace("/", ".").lstrip(".")
    main = MAIN.replace("shop.stock", module) + "\n# from shop.other import *\n"
    main = "from shop.other import reserve_others\n" + main
    written(tmp_path, main=main, shop__other="def reserve_others(basket):\n    return 2\n")
    (tmp_path / stock).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / stock).write_text(STOCK)
    if ignore_file is not None:
        (tmp_path / ignore_file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ignore_file).write_text(pattern)
    with serving(tmp_path) as editor:
        editor.open((tmp_path / "main.py").as_uri(), main)
        assert comes(editor, tmp_path / "main.py", lambda text: "def reserve_others(basket):" in text)
        assert "warehouse_name" not in given(editor, tmp_path / "main.py")
        assert str(tmp_path / stock) not in opened(editor, tmp_path)
        assert str(tmp_path / "shop/other.py") in opened(editor, tmp_path)


def test_links_do_not_lead_out_of_the_workspace(tmp_path: Path):
    outside = written(tmp_path / "outside", stock=STOCK)
    root = written(tmp_path / "work", main=MAIN, shop__other="X = 1\n")
    (root / "shop" / "stock.py").symlink_to(outside / "stock.py")
    with serving(root) as editor:
        editor.open((root / "main.py").as_uri(), MAIN)
        time.sleep(1)
        assert "warehouse_name" not in given(editor, root / "main.py")
        assert opened(editor, outside) == []


def test_a_folder_opened_by_its_link_and_a_document_by_its_real_path_share_context(tmp_path: Path):
    real = written(tmp_path / "real", main=MAIN, shop__stock=STOCK, shop__other="X = 1\n")
    (tmp_path / "link").symlink_to(real)
    with serving(tmp_path / "link") as editor:
        editor.open((real / "main.py").as_uri(), MAIN)
        signature = "# path: shop/stock.py\ndef reserve_items(basket, warehouse_name):\n"
        assert comes(editor, real / "main.py", lambda text: signature in text)
        other = (tmp_path / "link" / "shop" / "other.py").as_uri()
        editor.open(other, "X = 1\n")
        editor.change(other, 2, {"range": span((0, 0), (0, 0)), "text": "basket_reserve = checkout\n"})
        editor.items(other, 0, 0)
        assert comes(editor, real / "main.py", lambda text: "basket_reserve = checkout\n" in text)
        assert "# path: main.py\n" in given(editor, real / "main.py")


def test_in_a_file_of_secrets_nothing_is_suggested_and_none_of_it_is_shown_elsewhere(tmp_path: Path):
    written(tmp_path, main=MAIN)
    environment = tmp_path / ".env"
    with serving(tmp_path) as editor:
        editor.open(environment.as_uri(), "reserve_items_host = internal\nreserve_items(basket, internal", "dotenv")
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        time.sleep(0.7)
        assert editor.items(environment.as_uri(), 0, 5, kind=1) == []
        assert "internal" not in given(editor, tmp_path / "main.py")


def test_lines_that_look_like_secrets_are_cut_from_every_block(tmp_path: Path):
    secret = 'API_PASSWORD = "hunter2-hunter2"\n'
    main = f"{secret}{MAIN}\n{secret}x = 1\n"
    written(tmp_path, main=main, shop__stock=secret + STOCK)
    with serving(tmp_path) as editor:
        editor.open((tmp_path / "main.py").as_uri(), main)
        assert comes(editor, tmp_path / "main.py", lambda text: "warehouse_name" in text)
        text = given(editor, tmp_path / "main.py", 5, 18)
        assert "hunter2" not in text and "x = 1" in text and "reserve_items(" in text
        assert editor.items((tmp_path / "main.py").as_uri(), 0, 20, kind=1) == []


def test_more_of_an_imported_file_is_lookup_text_than_is_read(tmp_path: Path):
    stock = STOCK + "".join(f"\n\ndef reserve_{number}(basket):\n    return {number}\n" for number in range(60))
    written(tmp_path, main=MAIN, shop__stock=stock)
    with serving(tmp_path) as editor:
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        assert comes(editor, tmp_path / "main.py", lambda text: "warehouse_name" in text)
        read, lookup_text = both(editor, tmp_path / "main.py")
        assert read.count("def reserve_") < 30 < lookup_text.count("def reserve_")


def test_unsaved_text_of_a_closed_document_is_never_shown(tmp_path: Path):
    written(tmp_path, main=MAIN, shop__stock=STOCK)
    stock, unsaved = tmp_path / "shop" / "stock.py", STOCK + "reserve_items(basket, unsaved)\n"
    for text in (MAIN, MAIN.replace("shop.stock", "shop.other")):  # imported, and only open
        with serving(tmp_path) as editor:
            editor.open(stock.as_uri(), unsaved)
            editor.open((tmp_path / "main.py").as_uri(), text)
            given(editor, stock, 1, 0)
            assert comes(editor, tmp_path / "main.py", lambda text: "unsaved" in text)
            editor.notify("textDocument/didClose", {"textDocument": {"uri": stock.as_uri()}})
            assert "unsaved" not in given(editor, tmp_path / "main.py")
            time.sleep(0.5)
            assert "unsaved" not in given(editor, tmp_path / "main.py", 3, 0)


FILLER = "".join(f"x_{number} = {number}\n" for number in range(900))


def test_the_rest_of_a_long_document_is_lookup_text_without_its_secrets(tmp_path: Path):
    main = f"{MAIN}\n{FILLER}API_PASSWORD = 'hunter2-hunter2'\nfar_away = basket\n"
    written(tmp_path, main=main)
    with serving(tmp_path) as editor:
        editor.open((tmp_path / "main.py").as_uri(), main)
        assert comes(editor, tmp_path / "main.py", lambda text: "far_away = basket" in text)
        read, lookup_text = both(editor, tmp_path / "main.py")
        assert "far_away" in lookup_text and "far_away" not in read
        assert "hunter2" not in lookup_text and "x_899" in lookup_text
        last = main.count("\n") - 1
        change = {"range": span((last, 0), (last, 17)), "text": "far_away = warehouse"}
        editor.change((tmp_path / "main.py").as_uri(), 2, change)
        assert comes(editor, tmp_path / "main.py", lambda text: "far_away = warehouse" in text)


@pytest.mark.parametrize("ignored", [False, True])
def test_another_open_document_is_lookup_text_unless_it_is_ignored(tmp_path: Path, ignored: bool):
    stock = f"{STOCK}{FILLER}far_away = basket\n"
    written(tmp_path, main=MAIN, shop__stock=stock, shop__other="def reserve_items(others):\n    return 2\n")
    if ignored:
        (tmp_path / ".gitignore").write_text("stock.py")
    with serving(tmp_path) as editor:
        for name, text in (("shop/stock.py", stock), ("main.py", MAIN.replace("shop.stock", "shop.other"))):
            editor.open((tmp_path / name).as_uri(), text)
            given(editor, tmp_path / name, 700, 0)
        main = tmp_path / "main.py"
        assert comes(editor, main, lambda text: ("reserve_items(others)" if ignored else "far_away = basket") in text)
        assert ignored ^ ("far_away" in given(editor, main))
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {"workspaceContext": False}}})
        assert comes(editor, main, lambda text: "far_away" not in text)


@pytest.mark.parametrize("capabilities", [None, WATCHES], ids=["we watch", "the client watches"])
def test_changes_of_files_are_noticed(tmp_path: Path, capabilities: Any):
    written(tmp_path, main=MAIN, shop__stock=STOCK)
    stock = tmp_path / "shop" / "stock.py"

    def happened(kind: int) -> None:
        if capabilities is not None:
            changes = [{"uri": stock.as_uri(), "type": kind}]
            editor.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    with serving(tmp_path, capabilities) as editor:
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        assert comes(editor, tmp_path / "main.py", lambda text: "warehouse_name" in text)
        time.sleep(1.0)  # the watch has surely begun
        stock.write_text(STOCK.replace("warehouse_name", "depot_name"))
        happened(2)
        assert comes(editor, tmp_path / "main.py", lambda text: "depot_name" in text)
        stock.unlink()
        happened(3)
        assert comes(editor, tmp_path / "main.py", lambda text: "depot_name" not in text)
        stock.write_text(STOCK)
        happened(1)
        assert comes(editor, tmp_path / "main.py", lambda text: "warehouse_name" in text)


def test_the_client_is_asked_to_watch_if_it_can(tmp_path: Path):
    with serving(tmp_path, WATCHES) as editor:
        [registration] = editor.wait_for("client/registerCapability")["registrations"]
        patterns = [watcher["globPattern"] for watcher in registration["registerOptions"]["watchers"]]
        assert patterns[1:] == ["**/.gitignore", "**/.mercuryignore"] and ",py," in patterns[0]


def test_spots_edited_last_in_other_documents_are_shown(tmp_path: Path):
    other = "".join(f"value_{number} = {number}\n" for number in range(400))
    written(tmp_path, main=MAIN, shop__unrelated=other)
    with serving(tmp_path) as editor:
        uri = (tmp_path / "shop/unrelated.py").as_uri()
        editor.open(uri, other)
        editor.change(uri, 2, {"range": span((390, 0), (390, 0)), "text": "basket_reserve = checkout\n"})
        editor.open((tmp_path / "main.py").as_uri(), MAIN)
        assert comes(editor, tmp_path / "main.py", lambda text: "basket_reserve = checkout\n" in text)
