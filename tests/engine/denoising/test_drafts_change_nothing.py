"""A fill of the bundled model is what its reader writes left to right, whatever drafts: same tokens, same chances."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.engine import Engine
from mercury_engine.evaluation.gaps import held_out_files
from mercury_kernels.cpu import build

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document

pytestmark = pytest.mark.skipif(build.compiler() is None, reason="no C compiler")

HELD_OUT = Path(__file__).parents[2] / "data" / "held_out"

GAPS, GAPS_WITH_WRITER = 300, 20


@pytest.fixture(scope="module")
def bundled() -> Engine:
    return Engine.load(device="cpu", threads=1, backend="native")


def requests(count: int) -> Iterator[FillRequest]:
    """Gaps all over the held-out files, those of a file in order, so that they share what is read."""
    files, draw = held_out_files(HELD_OUT), Random(0)
    numbers = Counter(draw.choices(range(len(files)), [len(each.text) for each in files], k=count))
    for number, gaps in sorted(numbers.items()):
        text = files[number].text
        document = Document(f"file:///{files[number].name}", files[number].language, 1, text).snapshot()
        for at in sorted(draw.sample(range(len(text) - 1), gaps)):
            request = ContextBuilder(200, 80).build(document, at, None).request()
            yield replace(request, max_slots=6, multiline=at % 2 == 0, effort="high", worth=None)


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
