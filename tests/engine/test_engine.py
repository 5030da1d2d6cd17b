"""The engine answers requests of every kind, with a tiny random model."""

import logging
from dataclasses import replace

import pytest
import torch
from mercury_engine import loading
from mercury_engine.api import MAX_SLOTS, FillRequest
from mercury_engine.decoding.context_reader import MANY_TOKENS_READ
from mercury_engine.errors import RequestError
from mercury_engine.prompt.layout import rest_and_below
from mercury_lab.engine import Engine

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support import tiny

TEXT = tiny.SAMPLE[:700]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("engine")
    return {name: tiny.folder(root / name, rank) for name, rank in (("writer", 4), ("reader", 0))}


@pytest.fixture(scope="module", params=["writer", "reader"])
def engine(request, folders):
    return tiny.load(folders[request.param])


def request_at(text: str, cursor: int, **overrides) -> FillRequest:
    snapshot = Document("file:///a.py", "python", 1, text).snapshot()
    return replace(ContextBuilder(400, 200).build(snapshot, cursor, None).request(), **{"max_slots": 6, **overrides})


def assert_honest(engine: Engine, request: FillRequest) -> None:
    """The fill's tokens spell the cut word and then the fill; confidence is a probability."""
    fill, canvases = tiny.watched(engine, request)
    assert 0 <= fill.confidence <= 1
    assert fill.unsure_from is None or 0 <= fill.unsure_from < len(fill.text)
    if not canvases:
        assert fill.text == ""
        return
    settled = [slot.text for slot in canvases[-1] if slot.state == "committed"]
    if "\ufffd" not in "".join(settled):
        assert "".join(settled).startswith(fill.text)
    assert settled or fill.text == ""


@pytest.mark.parametrize("slots", [0, -1, MAX_SLOTS + 1])
def test_too_few_or_too_many_slots_are_refused(engine, slots):
    with pytest.raises(RequestError, match=str(MAX_SLOTS)):
        engine.fill(FillRequest(near="x", max_slots=slots))


@pytest.mark.parametrize("slots", [1, MAX_SLOTS])
def test_the_smallest_and_the_largest_canvas_are_filled(engine, slots):
    fill = engine.fill(FillRequest(near="x = 1 +", max_slots=slots, effort="high"))
    assert 1 <= fill.steps <= slots


@pytest.mark.parametrize("word", ["世", "naïve世", "😀", "x = '世界"])
def test_a_word_of_characters_without_a_token_of_their_own_is_continued(engine, word):
    fill = engine.fill(FillRequest(near=word, max_slots=4))
    assert 0 < fill.confidence <= 1
    assert_honest(engine, FillRequest(near=word, max_slots=4))


@pytest.mark.parametrize(
    "request_",
    [
        FillRequest(near="", max_slots=4),
        FillRequest(near="", suffix=("def f():\n", "    return 1\n"), max_slots=4),
        FillRequest(near="x = '\ud800", suffix=("\udfff'\n",), max_slots=4),
        FillRequest(near="x = '\ud83d\ude00", max_slots=4),
        FillRequest(near="", far=("", "import os\n"), suffix=("", "\n"), max_slots=4),
        FillRequest(near="y", suffix=("   ",), max_slots=4, multiline=True),
    ],
    ids=["empty", "only a suffix", "lone surrogates", "a split pair", "empty blocks", "blank suffix"],
)
def test_unusual_requests_are_filled(engine, request_):
    assert engine.fill(request_).steps >= 1
    assert_honest(engine, request_)


@pytest.mark.parametrize("cursor", [0, 50_000, 100_000])
def test_a_line_of_100_000_characters_is_filled(engine, cursor):
    fill = engine.fill(request_at("ab1 = cd, " * 10_000, cursor))
    assert fill.steps >= 1
    assert fill.tokens_read < 1000


@pytest.mark.parametrize(
    ("suffix", "line", "below"),
    [
        ((), [], []),
        ((")",), [")"], []),
        (("\n",), ["\n"], []),
        (("\ny = 2\n",), ["\n"], ["y = 2\n"]),
        ((")\ny = 2\n", "z = 3\n"), [")\n"], ["y = 2\n", "z = 3\n"]),
    ],
)
def test_the_rest_of_the_line_is_separated_from_the_lines_below(suffix, line, below):
    assert rest_and_below(suffix) == (line, below)


def test_the_reader_sees_the_lines_below_and_reads_them_once_while_the_line_is_typed(engine):
    engine.cache.clear()
    asked = FillRequest(near="x = fo", far=("import a\n",), suffix=(")\nfoot = 2\n", "print(foot)\n"), max_slots=2)
    blind = engine.surroundings(replace(asked, suffix=asked.suffix[:1]), [5, 6]).before
    seeing = engine.surroundings(asked, [5, 6]).before
    assert seeing[0].keys.shape[3] > blind[0].keys.shape[3]
    assert not torch.equal(seeing[1].keys, blind[1].keys)  # the near prefix as well
    engine.fill(asked)
    again = engine.fill(replace(asked, near="x = foo(", suffix=("))\nfoot = 2\n", asked.suffix[1])))
    assert again.tokens_read <= len(engine.tokenizer.encode("))\n")) + len(engine.tokenizer.encode("foo("))


def test_freed_memory_is_returned_once_after_a_long_prefill_and_not_after_a_key(engine, monkeypatch):
    given_back = []
    monkeypatch.setattr("mercury_engine.decoding.context_reader.return_freed_memory", lambda: given_back.append(True))
    engine.cache.clear()
    asked = FillRequest(near="x = foo", far=(TEXT,), max_slots=2)
    assert engine.fill(asked).tokens_read > MANY_TOKENS_READ
    assert len(given_back) == 1
    assert 0 < engine.fill(replace(asked, near="x = foo + bar")).tokens_read < MANY_TOKENS_READ
    assert len(given_back) == 1


def test_embedding_rows_without_a_token_are_never_chosen(tmp_path):
    """Checkpoints pad their vocabulary: rows behind the tokenizer's last token mean nothing."""
    engine = tiny.load(tiny.folder(tmp_path, vocab_size=900))
    assert engine.tokenizer.size < 900
    for near in ("x = ", "import os", "def f(", "for"):
        for multiline in (False, True):
            assert_honest(engine, FillRequest(near=near, max_slots=8, multiline=multiline))


def test_a_cuda_device_that_does_not_exist_is_refused(folders, monkeypatch, caplog):
    monkeypatch.setattr(loading, "nvidia_gpus", lambda: ())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RequestError, match="cuda"):
        Engine.load(folders["reader"], device="cuda")
    with caplog.at_level(logging.INFO):
        assert Engine.load(folders["reader"], device="auto").device == "cpu"
    assert caplog.text.count("no CUDA device") == 1
