"""A fill of the bundled model is what it writes left to right, whatever drafts and whatever was read before."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import compile_kernels
import pytest
from mercury_engine.api import Control, FillRequest, GenerateRequest, Sampling
from mercury_engine.decoding.autoregressive import verifier
from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation.gaps import HeldOutFile, held_out_files

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support import thorough

pytestmark = pytest.mark.skipif(compile_kernels.compiler() is None, reason="no C compiler")

CODE_FOLDER = Path(__file__).parents[2] / "data" / "code"

GAPS = thorough.GAPS or 30


def loaded() -> Engine:
    return Engine.load(device="cpu", threads=1, backend="native")


@pytest.fixture(scope="module")
def bundled() -> Engine:
    return loaded()


def request_at(file: HeldOutFile, text: str, cursor: int, multiline: bool) -> FillRequest:
    document = Document(f"file:///{file.name}", file.language, 1, text).snapshot()
    request = ContextBuilder(200, 80).build(document, cursor, None).request()
    return replace(request, max_slots=6, multiline=multiline, effort="high", utility=None)


def requests(count: int) -> Iterator[FillRequest]:
    """Gaps all over the held-out files, those of a file in order, so that they share what is read."""
    files, draw = held_out_files(CODE_FOLDER), Random(0)
    numbers = Counter(draw.choices(range(len(files)), [len(each.text) for each in files], k=count))
    for number, gaps in sorted(numbers.items()):
        text = files[number].text
        for at in sorted(draw.sample(range(len(text) - 1), gaps)):
            yield request_at(files[number], text, at, multiline=at % 2 == 0)


def written(engine: Engine, request: FillRequest) -> tuple[list[int], list[float], int]:
    """Tokens and probabilities of the fill, and the number of steps."""
    [found], context = finished(engine.decoder.write(request, Control()), engine.reader)
    return ([], [], 0) if context is None else (found.ids, found.probabilities, found.steps)


def test_a_fill_is_what_the_model_writes_left_to_right(bundled: Engine):
    alone = bundled.varied(replace(bundled.parts.options, lookahead=0))
    saved = tokens = 0
    for request in requests(GAPS):
        ids, probabilities, steps = written(alone, request)
        drafted_ids, drafted_probabilities, drafted_steps = written(bundled, request)
        assert drafted_ids == ids
        assert drafted_probabilities == probabilities
        saved, tokens = saved + steps - drafted_steps, tokens + len(ids)
    assert tokens > 2 * GAPS
    assert saved > tokens / 20  # 9 of 130 at 30 gaps, more than a tenth at 75


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, 0.95, seed=3)], ids=["greedy", "sampled"])
def test_a_generated_text_is_the_same_whatever_drafts_and_segments(
    bundled: Engine, monkeypatch: pytest.MonkeyPatch, sampling: Sampling
):
    prompt = "import os\n\n\nclass Tree:\n    def insert(self, key):\n"
    request = GenerateRequest(prompt, max_tokens=80, sampling=sampling, alternatives=0)
    found = bundled.generate(request)
    monkeypatch.setattr(verifier, "SIDE_TOKENS", 7)
    alone = bundled.varied(replace(bundled.parts.options, lookahead=0)).generate(request)
    assert (found.text, found.log_probabilities) == (alone.text, alone.log_probabilities)
    assert found.steps < alone.steps


@pytest.mark.parametrize("number", range(0, 8, 2))
def test_a_fill_after_typing_is_that_of_an_engine_that_has_read_nothing(bundled: Engine, number: int):
    file = held_out_files(CODE_FOLDER)[number]
    middle = len(file.text) // 2
    for typed in range(10):
        cursor = middle + typed
        request = request_at(file, file.text[:cursor] + file.text[middle + 40 :], cursor, multiline=True)
        after_typing = written(bundled, request)
    assert after_typing[0]
    assert written(loaded(), request) == after_typing
