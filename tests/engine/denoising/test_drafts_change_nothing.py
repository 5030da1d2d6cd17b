"""A fill of the bundled model is what its reader writes left to right, whatever drafts and whatever was read before."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.engine import Engine
from mercury_kernels.cpu import build
from mercury_lab.evaluation.gaps import HeldOutFile, held_out_files

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document

pytestmark = pytest.mark.skipif(build.compiler() is None, reason="no C compiler")

HELD_OUT = Path(__file__).parents[2] / "data" / "held_out"

GAPS, GAPS_WITH_WRITER = 300, 20


def loaded() -> Engine:
    return Engine.load(device="cpu", threads=1, backend="native")


@pytest.fixture(scope="module")
def bundled() -> Engine:
    return loaded()


def request_at(file: HeldOutFile, text: str, cursor: int, multiline: bool) -> FillRequest:
    document = Document(f"file:///{file.name}", file.language, 1, text).snapshot()
    request = ContextBuilder(200, 80).build(document, cursor, None).request()
    return replace(request, max_slots=6, multiline=multiline, effort="high", worth=None)


def requests(count: int) -> Iterator[FillRequest]:
    """Gaps all over the held-out files, those of a file in order, so that they share what is read."""
    files, draw = held_out_files(HELD_OUT), Random(0)
    numbers = Counter(draw.choices(range(len(files)), [len(each.text) for each in files], k=count))
    for number, gaps in sorted(numbers.items()):
        text = files[number].text
        for at in sorted(draw.sample(range(len(text) - 1), gaps)):
            yield request_at(files[number], text, at, multiline=at % 2 == 0)


def written(engine: Engine, request: FillRequest, drafts: str) -> tuple[list[int], list[float], int]:
    """Tokens and chances of the canvas, and the number of steps."""
    denoiser = engine.denoiser
    rule, run, found = denoiser.rule, denoiser.run, []
    denoiser.rule = replace(rule, drafts=drafts)
    denoiser.run = lambda *given: (found.append(given[1]), run(*given))[1]
    try:
        engine.fill(request)
    finally:
        denoiser.rule, denoiser.run = rule, run
    [[canvas]] = found or [[None]]
    return ([], [], 0) if canvas is None else (canvas.ids[: canvas.settled], canvas.chances, canvas.steps)


@pytest.mark.parametrize(("drafts", "count"), [("context", GAPS), ("writer", GAPS_WITH_WRITER)])
def test_a_fill_is_what_the_reader_writes_left_to_right(bundled: Engine, drafts: str, count: int):
    saved = tokens = 0
    for request in requests(count):
        ids, chances, steps = written(bundled, request, "none")
        drafted_ids, drafted_chances, drafted_steps = written(bundled, request, drafts)
        assert drafted_ids == ids
        assert drafted_chances == chances
        saved, tokens = saved + steps - drafted_steps, tokens + len(ids)
    assert tokens > 2 * count
    assert saved > tokens / 10


@pytest.mark.parametrize("number", range(0, 12, 3))
def test_a_fill_after_typing_is_that_of_an_engine_that_has_read_nothing(bundled: Engine, number: int):
    file = held_out_files(HELD_OUT)[number]
    middle = len(file.text) // 2
    for typed in range(10):
        cursor = middle + typed
        request = request_at(file, file.text[:cursor] + file.text[middle + 40 :], cursor, multiline=True)
        after_typing = written(bundled, request, "context")
    assert after_typing[0]
    assert written(loaded(), request, "context") == after_typing
