"""Scoring texts in a gap: equal to a direct computation."""

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_lab.engine import finished

from tests.support import tiny
from tests.support.scoring import scored

FAR = ("import os\n", "def view(self):\n    pass\n")
SUFFIX = ("(1) + x\n", "\nclass View:\n    pass\n")


@pytest.fixture(scope="module", params=[4, 0], ids=["masked", "causal"])
def engine(request, tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("comparing") / "model", rank=request.param))


def token_by_token(engine, request: FillRequest, text: str) -> float:
    """Nats of a text, with each token read as the end of the near prefix."""
    cut = engine.tokenizer.cut(request.near)
    near, nats = [*(cut.read or [engine.tokenizer.start_id]), *cut.known], 0.0
    for token in engine.tokenizer.encode(cut.spell + text):
        [logp_V] = finished(Verifier(engine.reader, engine.surroundings(request, near)).verify([]), engine.reader)
        nats += float(logp_V[token])
        near = [*near, token]
    return nats


@pytest.mark.parametrize("near", ["    return self.", "    x = vie", "", "y = '世", "\n"])
def test_a_score_equals_reading_token_by_token(engine, near):
    request = FillRequest(near=near, far=FAR, suffix=SUFFIX)
    texts = ("view", "views_of_all", "", "世界 + a")
    expected = [token_by_token(engine, request, text) for text in texts]
    assert scored(engine, request, texts) == pytest.approx(expected, abs=2e-3)


def test_the_text_below_the_line_is_context(engine):
    asked = [FillRequest(near="x = ", far=FAR, suffix=suffix) for suffix in (SUFFIX, SUFFIX[:1])]
    assert len({round(scored(engine, request, ["view"])[0], 3) for request in asked}) == 2
