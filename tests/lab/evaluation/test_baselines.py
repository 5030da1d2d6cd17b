"""What Mercury is compared with: copying, and the reader alone."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from mercury_engine.api import Fill, FillRequest
from mercury_lab.evaluation import baselines
from mercury_lab.evaluation.gaps import Gap, HeldOutFile, gap_at

from tests.support import tiny

CODE = tiny.SAMPLE[:1500]


def gap(before: str, truth: str = "?", after: str = "", **changes) -> Gap:
    document = HeldOutFile(Path("a.py"), "toy/a.py", "python", before + truth + after)
    made = gap_at(document, len(before), len(before) + len(truth), "rest_of_line")
    return replace(made, request=replace(made.request, **changes))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("tiny") / "model"))


def test_copying_continues_the_longest_repeated_context():
    before = "width = self.left\nheight = other.left + 1\nheight = other.left"
    assert baselines.copying(gap(before)).text == " + 1"


def test_the_reader_alone_sees_one_run_of_plain_text_before_the_gap():
    asked: list[FillRequest] = []
    made = gap(CODE, "x", "\nafter = 1\n")
    engine = SimpleNamespace()
    engine.fill = lambda request: asked.append(request) or Fill("y", 0.5, 1, 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "left_to_right", lambda _: engine)
        baselines.reader_filler(engine)(made)
    assert [(request.near, request.far, request.suffix) for request in asked] == [(CODE, (), ())]
