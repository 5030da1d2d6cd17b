"""What a key costs, counted and not timed: tokens read, functions called, nodes visited and text copied."""

import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Any

import mercury_engine
import pytest
from mercury_engine.api import Fill, FillRequest
from mercury_lab.engine import Engine
from tree_sitter import TreeCursor

from mercury_lsp.documents import document, syntax
from mercury_lsp.documents.chunked_text import ChunkedText, PrefixSums
from tests.support import tiny
from tests.support.fake_engine import FakeEngine
from tests.support.typist import JumpingLoop, Typist, keys, typed_again

from on_keys.script import Script, moved, repeated  # isort: skip

BUNDLED_TOKENIZER = Path(mercury_engine.__file__).parent / "assets" / "mercury-135m" / "tokenizer.json"

TYPED_KEYS = 150

LANGUAGES = {".py": "python", ".go": "go", ".js": "javascript"}

FILES = ("library/shelves.py", "graphs/paths.py", "router/middleware.go", "shop/cart.js")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    loop = JumpingLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Engine:
    """Random weights behind the bundled tokenizer."""
    folder = tiny.folder(tmp_path_factory.mktemp("tiny") / "model", rank=0, vocab_size=49_152)
    (folder / "tokenizer.json").write_bytes(BUNDLED_TOKENIZER.read_bytes())
    return tiny.load(folder)


async def tokens_by_kind(engine: Engine, name: str) -> tuple[Counter[str], Counter[str], int]:
    """Tokens that keys and their pauses read, and the keys, by kind; and all tokens read, with those of opening."""
    script = typed_again((tiny.CODE / name).read_text("utf-8"), TYPED_KEYS)
    engine.cache.clear()
    typist, uri, first = Typist(engine), f"file:///{name}", engine.cache.tokens_read
    await typist.open(uri, LANGUAGES[Path(name).suffix], script.text, script.keys[0].start)
    read, count, last = Counter[str](), Counter[str](), engine.cache.tokens_read
    for key, before, after in keys(script, TYPED_KEYS):
        await typist.press(uri, key, before, after)
        read[key.kind] += engine.cache.tokens_read - last
        count[key.kind] += 1
        last = engine.cache.tokens_read
    typist.close()
    return read, count, last - first


def test_keys_read_little_more_than_what_they_type(engine):
    read, count, whole = Counter[str](), Counter[str](), 0
    for name in FILES:
        by_kind, number, in_all = run(tokens_by_kind(engine, name))
        read, count, whole = read + by_kind, count + number, whole + in_all
    assert min(count["type"] / 500, count["delete"] / 20, count["jump"] / 5) >= 1
    assert read["type"] <= 0.35 * count["type"], "a typed key reads the tokens that it completes: one in three"
    assert read["delete"] == 0, "what was there before is still known"
    assert read["jump"] <= 200 * count["jump"], "a jump reads the lines around its goal and keeps the rest"
    assert read.total() <= 3 * count.total()
    assert whole <= 10 * count.total(), "the context is read once, and the text near the cursor once more"


class Work(Counter[str]):
    """Counts what happens while a key is handled, on the event loop's thread and the engine's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cut, reader, summed = ChunkedText.slice, ChunkedText.reader, PrefixSums.replaced
        monkeypatch.setattr(ChunkedText, "slice", lambda text, *span: self._copied(cut(text, *span)))
        monkeypatch.setattr(ChunkedText, "reader", lambda *args: self._counting(reader(*args)))
        monkeypatch.setattr(PrefixSums, "replaced", lambda sums, *change: self._summing(sums, summed(sums, *change)))

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """See `sys.setprofile`."""
        if event in ("call", "c_call"):
            self["calls"] += 1
            self["nodes"] += isinstance(getattr(argument, "__self__", None), TreeCursor)

    def _copied(self, text: Any) -> Any:
        self["characters"] += len(text)
        return text

    def _counting(self, read: Callable[[int, object], bytes]) -> Callable[[int, object], bytes]:
        return lambda byte, point: self._copied(read(byte, point))

    def _summing(self, before: PrefixSums, after: PrefixSums) -> PrefixSums:
        self["sums"] += after._stored is not before._stored
        return after


class Checking(FakeEngine):
    """Suggests an open bracket, which changes what all of the text behind it means, and has it checked."""

    work: Work

    def fill(self, request: FillRequest) -> Fill:
        if (check := self.controls[-1].check) is not None:  # a look ahead has none
            before = sys.getprofile()
            sys.setprofile(self.work.profile)
            check("(self.value")
            sys.setprofile(before)
        return Fill("(self.value", 0.9, steps=1, elapsed=0.0, is_finished=True)


async def work_of(script: Script, work: Work) -> Counter[str]:
    """What the keys of a script cost, without the pauses between them."""
    engine = Checking()
    engine.work = work
    typist, uri = Typist(engine), "file:///long.go"
    await typist.open(uri, "go", script.text, script.keys[0].start)
    work.clear()
    for key, before, after in keys(script, TYPED_KEYS):
        sys.setprofile(work.profile)
        typist.edit(uri, key, before)
        await typist.ask(uri, after, key.cursor)
        sys.setprofile(None)
    typist.close()
    return Counter(work)


def declarations(name: str) -> str:
    """A Go file from its first function or type on, so that it may stand between others."""
    text = (tiny.CODE / "router" / name).read_text("utf-8")
    return text[min(text.index("\nfunc "), text.index("\ntype ")) :]


def test_a_key_in_a_long_file_costs_what_it_costs_in_a_short_one(monkeypatch):
    monkeypatch.setattr(syntax, "CHECK_SECONDS", 60.0)  # or the work would depend on the machine
    monkeypatch.setattr(document, "KEYSTROKE_PARSE_SECONDS", 60.0)
    script = typed_again(declarations("routes.go"), TYPED_KEYS)
    rest = repeated(declarations("middleware.go"), 10_000)
    work = Work(monkeypatch)
    near = repeated(declarations("middleware.go"), 150)
    short = run(work_of(moved(script, near, near), work))
    long = run(work_of(moved(script, rest, rest), work))
    assert short["calls"] > 50_000 and short["nodes"] > 500 and short["characters"] > 50_000
    for name in ("calls", "nodes", "characters", "sums"):
        assert long[name] <= 1.2 * short[name], name
