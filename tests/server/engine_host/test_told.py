"""What a reply tells of its tokens' probabilities, and the probability of a change that comes of it."""

from typing import Any

import pytest
from mercury_engine.text.lines import lines_of

from mercury_lsp.engine_host.remote.answers import Told
from tests.support.edit_server import llama_probabilities, vllm_probabilities

TEXT = "a = 1\nb = é\nc = 3\n"
TOKENS = [("a", 1.0), (" = 1\n", 0.5), ("b", 0.5), (" =", 0.5), (" é\n", 0.25), ("c = 3\n", 0.8), ("<end>", 0.1)]


def reply(logprobs: Any) -> Any:
    return {"choices": [{"text": TEXT, "logprobs": logprobs}]}


@pytest.mark.parametrize("tell", [llama_probabilities, vllm_probabilities])
def test_a_changes_probability_is_that_of_the_tokens_that_differ(tell: Any):
    told = Told.of(reply(tell(TOKENS)), TEXT)
    assert told is not None
    places = told.of_lines(lines_of(TEXT))
    assert places == {0: 0, 1: 6, 2: 12, 3: 18}
    assert told.of_change("b = 2\n", "b = é\n", places[1]) == pytest.approx(0.25)
    assert told.of_change("x = é\n", "b = é\n", places[1]) == pytest.approx(0.5)
    assert told.of_change("", "b = é\n", places[1]) == pytest.approx(0.5 * 0.5 * 0.25)
    assert told.of_change("gone()\n", "", places[2]) == pytest.approx(0.8)
    assert told.of_change("gone()\n", "", places[3]) == pytest.approx(0.1)


NAN, NONE = float("nan"), [None, *[-0.1] * (len(TOKENS) - 1)]


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        [],
        {"content": []},
        {"content": "x"},
        {"content": [{"token": "a"}]},
        {"content": [7]},
        {"content": [{"token": "other text", "logprob": -0.1}]},
        {"content": [{"token": "a", "bytes": [999], "logprob": -0.1}]},
        {"tokens": [text for text, _ in TOKENS], "token_logprobs": NONE},
        {"tokens": [text for text, _ in TOKENS], "token_logprobs": [-0.1]},
        {"tokens": [text for text, _ in TOKENS], "token_logprobs": [NAN] * len(TOKENS)},
        {"tokens": [text for text, _ in TOKENS], "token_logprobs": ["x"] * len(TOKENS)},
    ],
)
def test_what_makes_no_sense_tells_nothing(logprobs: Any):
    assert Told.of(reply(logprobs), TEXT) is None
