"""Which files are found and opened, what they declare, and which snippets are chosen."""

from pathlib import Path

import pytest

from mercury_lsp.context.workspace import snippets
from mercury_lsp.context.workspace.imports import FileIndex, imports
from mercury_lsp.context.workspace.library import DocumentView, Library, PreparedSnippets
from mercury_lsp.context.workspace.snippets import Snippet, SnippetKind, choose, most_similar, words_of
from mercury_lsp.documents.document import Document


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def opened(*roots: Path) -> tuple[Library, dict[str, PreparedSnippets]]:
    prepared: dict[str, PreparedSnippets] = {}
    library = Library(lambda: None, prepared.__setitem__, lambda _: None)
    library.open(roots)
    finish(library)
    return library, prepared


def finish(library: Library) -> None:
    while library.step():
        pass


def found(root: Path) -> set[str]:
    index = opened(root)[0].index
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.as_posix() in index}


def prepare_for(library: Library, path: Path, text: str) -> None:
    document = Document(path.as_uri(), "python", 1, text)
    library.prepare(DocumentView(path.as_posix(), document.snapshot(), 0, {}))


# Ignored files


NESTED = """
top.py a/top.py x_gen.py a/keep_gen.py a/local.py local.py generated/b.py private/c.py mine.py
node_modules/d.js .hidden/e.py lib/f.min.js lib/f.js notes.txt
""".split()  # noqa: SIM905


def test_nested_ignore_files_count_and_the_nearest_pattern_wins(tmp_path: Path):
    written(
        tmp_path,
        {
            ".gitignore": "generated/\n*_gen.py\n/top.py\n",
            "a/.gitignore": "!keep_gen.py\nlocal.py\n",
            ".mercuryignore": "private/\n",
            ".git/info/exclude": "mine.py\n",
            **dict.fromkeys(NESTED, "x = 1\n"),
        },
    )
    assert found(tmp_path) == {"a/top.py", "a/keep_gen.py", "local.py", "lib/f.js"}


def test_mercuryignore_cannot_reinstate_what_git_ignores(tmp_path: Path):
    written(tmp_path, {".gitignore": "a.py\n", ".mercuryignore": "!a.py\n", "a.py": "", "b.py": ""})
    assert found(tmp_path) == {"b.py"}


def test_a_repositorys_rules_apply_when_one_of_its_folders_is_opened(tmp_path: Path):
    written(tmp_path, {".git/HEAD": "", ".gitignore": "*_gen.py\n", "sub/a_gen.py": "", "sub/b.py": ""})
    assert found(tmp_path / "sub") == {"b.py"}


def test_a_file_that_becomes_ignored_is_no_longer_shown(tmp_path: Path):
    written(tmp_path, {"stock.py": "def reserve(): ...\n"})
    library, prepared = opened(tmp_path)
    main = tmp_path / "main.py"
    prepare_for(library, main, "from stock import reserve\n")
    assert prepared[main.as_uri()].snippets
    (tmp_path / ".gitignore").write_text("stock.py")
    library.open((tmp_path,))
    finish(library)
    assert not prepared[main.as_uri()].snippets


@pytest.mark.parametrize(
    "text", ["reserve = 1\n" * snippets.MAX_FILE_BYTES, "reserve\0", f"reserve = '{'x' * 3000}'\n"]
)
def test_large_binary_and_minified_files_show_nothing(tmp_path: Path, text: str):
    written(tmp_path, {"stock.py": text})
    library, prepared = opened(tmp_path)
    prepare_for(library, tmp_path / "main.py", "from stock import reserve\n")
    assert not prepared[(tmp_path / "main.py").as_uri()].snippets


# Imports

FILES = """
/w/pkg/__init__.py /w/pkg/core.py /w/pkg/sub/util.py /w/src/app/main.py /w/tests/test_core.py /w/web/a.ts
/w/web/lib/index.ts /w/web/b.tsx /w/go/store/store.go /w/go/store/store_test.go /w/crate/src/lib.rs
/w/crate/src/net/mod.rs /w/crate/src/net/tcp.rs /w/java/com/shop/Cart.java /w/c/src/main.c
/w/c/include/shop/cart.h /w/c/src/local.h /w/lua/shop/cart.lua /w/lua/shop/init.lua
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("language", "path", "text", "expected"),
    [
        ("python", "/w/tests/test_core.py", "from pkg.core import A, B", "/w/pkg/core.py"),
        ("python", "/w/pkg/sub/util.py", "from .. import core", "/w/pkg/core.py /w/pkg/__init__.py"),
        ("python", "/w/pkg/core.py", "from .sub import (\n    util,\n)", "/w/pkg/sub/util.py"),
        ("python", "/w/pkg/core.py", "import os, app.main as m", "/w/src/app/main.py"),
        ("typescript", "/w/web/b.tsx", "import { x } from './a'", "/w/web/a.ts"),
        ("typescript", "/w/web/b.tsx", "import type { X } from './a.js'", "/w/web/a.ts"),
        ("javascript", "/w/web/b.tsx", "const { y } = require('./lib')", "/w/web/lib/index.ts"),
        ("go", "/w/go/main.go", 'import (\n\t"fmt"\n\t"example.com/shop/store"\n)', "/w/go/store/store.go"),
        (
            "rust",
            "/w/crate/src/lib.rs",
            "mod net;\nuse crate::net::tcp::Stream;",
            "/w/crate/src/net/mod.rs /w/crate/src/net/tcp.rs",
        ),
        ("rust", "/w/crate/src/net/tcp.rs", "use super::Listener;", "/w/crate/src/net/mod.rs"),
        ("java", "/w/java/com/other/Main.java", "import com.shop.Cart;", "/w/java/com/shop/Cart.java"),
        (
            "c",
            "/w/c/src/main.c",
            '#include "local.h"\n#include <shop/cart.h>\n#include <stdio.h>',
            "/w/c/src/local.h /w/c/include/shop/cart.h",
        ),
        (
            "lua",
            "/w/lua/main.lua",
            'local cart = require "shop.cart"\nrequire("shop")',
            "/w/lua/shop/cart.lua /w/lua/shop/init.lua",
        ),
        ("json", "/w/a.json", '"import x"', ""),
    ],
)
def test_imports_resolve_to_files(language: str, path: str, text: str, expected: str):
    index = FileIndex()
    for each in FILES:
        index.add(each)
    resolved = [file for each in imports(language, text, path) for file in index.resolve(each, path, 4)]
    assert resolved == expected.split()


def test_imports_are_found_where_the_workspace_is_the_whole_disk(tmp_path: Path):
    root = written(tmp_path, {"main.py": "from stock import reserve\n", "stock.py": "def reserve(basket): ...\n"})
    prepared: dict[str, PreparedSnippets] = {}
    library = Library(lambda: None, prepared.__setitem__, lambda _: None)
    library.open((Path(tmp_path.anchor),))
    library.changed([(root / "stock.py").as_posix()])  # it is not waited for until the whole disk is known
    prepare_for(library, root / "main.py", "from stock import reserve\n")
    [snippets] = [each.snippets for each in prepared.values()]
    assert "def reserve(basket)" in snippets[0].text
    assert not library.allows("/etc/passwd") and library.allows((root / "main.py").as_posix())


# Declarations


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "python",
            "LIMIT = 3\nclass A(B):\n    '''doc'''\n    size: int = 0\n    @property\n    def f(\n"
            "        self, x\n    ) -> int:\n        return x\n    def _g(self): ...\ndef h(a): ...\n",
            "LIMIT = 3\nclass A(B):\n    size: int = 0\n    def f( self, x ) -> int:\ndef h(a):\n",
        ),
        ("go", "package a\n\nfunc F(x int) error {\n\treturn nil\n}\n", "func F(x int) error\n"),
        ("rust", "impl A {\n    pub fn f(&self) -> u8 { 1 }\n}\n", "impl A\n    pub fn f(&self) -> u8\n"),
        ("typescript", "export interface A { f(x: number): void }\n", "interface A\n    f(x: number): void\n"),
        ("java", "class A {\n  int f(int x) { return x; }\n}\n", "class A\n    int f(int x)\n"),
        ("c", "#ifndef A\n#define A\nint f(int x);\n#endif\n", "#define A\nint f(int x);\n"),
        ("lua", "local M = {}\nfunction M.f(x)\n  return x\nend\nreturn M\n", "local M = {}\nfunction M.f(x)\n"),
        ("plaintext", "def f(): ...", ""),
    ],
)
def test_declarations_are_signatures_one_per_line(language: str, text: str, expected: str):
    assert snippets.declarations(language, text, lambda: None) == expected


# Choice


def code(text: str, kind: SnippetKind = SnippetKind.CODE) -> Snippet:
    return Snippet.of(kind, "a.py", "python", text)


def test_the_most_similar_snippet_of_each_kind_is_chosen():
    cart, stock = code("basket warehouse\n"), code("warehouse\n")
    declared = code("def basket(): ...\n", SnippetKind.DECLARATIONS)
    assert choose([stock, cart, declared], words_of("basket in warehouse")) == (declared, cart)
    assert choose([stock, cart], words_of("nothing alike")) == ()
    assert most_similar([stock, cart], words_of("basket"), 5) == [cart]
