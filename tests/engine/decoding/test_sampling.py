"""Sampling: the distribution that tokens are drawn from, penalties, seeds, and that drafts change none of it."""

from collections import Counter

import numpy as np
import pytest
from mercury_engine.api import GenerateRequest, Sampling
from mercury_engine.decoding.autoregressive.generating import TokenSampler, likeliest, log_probability
from mercury_engine.decoding.options import AutoregressiveOptions

from tests.support.scripted_network import engine as scripted_engine

PROBABILITIES = np.array([0.4, 0.3, 0.15, 0.1, 0.05], np.float32)
LOGP = np.log(PROBABILITIES)


def drawn(sampling: Sampling, count: int = 4000, hidden=None) -> np.ndarray:
    """How often each token is drawn, as shares."""
    sampler = TokenSampler(sampling, [])
    counts = Counter(sampler.choose(LOGP, hidden) for _ in range(count))
    return np.array([counts[token] / count for token in range(len(LOGP))])


@pytest.mark.parametrize("temperature", [0.0, 1e-50, 1e-320])
def test_temperature_0_and_the_smallest_take_the_likeliest(temperature):
    assert drawn(Sampling(temperature), 10)[0] == 1


def test_temperature_1_draws_from_the_model():
    assert drawn(Sampling(1.0, seed=1)) == pytest.approx(PROBABILITIES, abs=0.03)


def test_penalties_count_the_text_and_repetition_the_prompt_too():
    present = TokenSampler(Sampling(presence_penalty=0.5), [0])
    assert present.choose(LOGP) == 0
    present.accept(0)
    assert present.choose(LOGP) == 1
    frequent = TokenSampler(Sampling(frequency_penalty=0.2), [])
    frequent.accept(0)
    assert frequent.choose(LOGP) == 0
    frequent.accept(0)
    assert frequent.choose(LOGP) == 1
    assert TokenSampler(Sampling(repetition_penalty=1.5), [0]).choose(LOGP) == 1
    assert pytest.approx(PROBABILITIES) == np.exp(LOGP), "the model's own array stays as it is"


def test_log_probabilities_are_the_models():
    found = log_probability(LOGP, 2, 2, [b"a", b"b", b"c", b"d", b"e"].__getitem__)
    assert (found.text, [each.text for each in found.alternatives]) == ("c", ["a", "b"])
    assert np.exp([found.nats, *(each.nats for each in found.alternatives)]) == pytest.approx([0.15, 0.4, 0.3])
    assert likeliest(LOGP, 9).tolist() == [0, 1, 2, 3, 4]


def test_the_bytes_of_tokens_make_the_characters_that_they_share(tmp_path):
    engine, network = scripted_engine(tmp_path)
    ids = engine.tokenizer.encode("é\U0001f600")
    network.script = lambda before: {ids[len(before) - 2]: 0.9, 110: 0.1}
    found = engine.generate(GenerateRequest("x", max_tokens=len(ids), alternatives=1))
    for tokens in (found.log_probabilities, [each.alternatives[0] for each in found.log_probabilities]):
        assert b"".join(bytes(each.data) for each in tokens).decode() == found.text == "é\U0001f600"


@pytest.mark.parametrize("sampling", [Sampling(0.7, seed=3), Sampling(1.0, 0.9, seed=4, presence_penalty=0.3)])
def test_drafts_do_not_change_what_a_seed_draws(tmp_path, sampling):
    engine, network = scripted_engine(tmp_path)
    network.script = lambda before: {100 + len(before) % 3: 0.8, 110: 0.1, 120: 0.1}
    without = engine.varied(AutoregressiveOptions(lookahead=0))
    request = GenerateRequest("x = ", max_tokens=60, sampling=sampling, alternatives=0)
    drafted, plain = engine.generate(request), without.generate(request)
    assert (drafted.text, drafted.log_probabilities) == (plain.text, plain.log_probabilities)
    assert drafted.steps < plain.steps == plain.tokens == len(plain.log_probabilities)
