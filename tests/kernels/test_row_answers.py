"""What a rule needs of a pass: the GPU's kernel, its torch twin and the NumPy twin tell the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.models.row_answers import CANDIDATES, RowQuestion, bits_of
from mercury_kernels import answers, reference
from mercury_kernels.operands import Matrix

from tests.support.asking import answered
from tests.support.close import randn


def told(run, hidden, weight, question, scale=1.0, never=-1):
    device = hidden.device
    bits = torch.from_numpy(question.banned_N.view(np.int32)).to(device)
    lists = torch.from_numpy(question.list_W).to(device)
    told = run(hidden, Matrix(weight), bits, lists, scale, never, keeps=True)
    return [each.cpu().numpy() for each in told]


def asked(random, rows, tokens):
    """Rows with other ban lists: none, a few tokens, half of them, all but two."""
    lists = np.stack([bits_of(random.random(tokens) < share) for share in (0.02, 0.5, 1 - 2 / tokens)])
    return RowQuestion(random.integers(-1, len(lists), rows, dtype=np.int32), lists)


@pytest.mark.parametrize("scale", [1.0, 0.25])
@pytest.mark.parametrize(("rows", "tokens", "channels"), [(1, 33, 16), (5, 300, 40), (17, 1025, 96), (70, 515, 24)])
def test_the_kernel_tells_what_its_twins_tell(device, rows, tokens, channels, scale):
    hidden, weight = randn(rows, channels, device=device), randn(tokens, channels, device=device)
    question = asked(np.random.default_rng(rows), rows, tokens)
    logits = (hidden @ weight.T * scale).cpu().numpy()
    logits[:, 7] = -np.inf
    expected = answered(logits, replace(question, draws=True))
    for run in (answers.answers, reference.answers):
        token, figures, free = told(run, hidden, weight, question, scale, never=7)
        best = -np.sort(-free, 1)[:, :CANDIDATES]
        np.testing.assert_allclose(best, expected.candidate_logit_WK[:, : best.shape[1]], rtol=2e-5, atol=2e-5)
        assert token.tolist() == expected.token_W.tolist()
        names = ("logit_W", "log_sum_W", "whole_W", "entropy_W")
        for name, found in zip(names, figures.T, strict=True):
            np.testing.assert_allclose(found, getattr(expected, name), rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("run", [answers.answers, reference.answers])
def test_a_row_without_an_allowed_token_has_no_probability(device, run):
    hidden, weight = randn(2, 16, device=device), randn(40, 16, device=device)
    question = RowQuestion(np.array([0, -1], np.int32), bits_of(np.ones(40, np.bool_))[None])
    _, figures, _ = told(run, hidden, weight, question)
    assert np.isnan(figures[0, 0] - figures[0, 1])
    assert np.isfinite(figures[1]).all()


def test_of_equal_logits_the_first_token_wins(device):
    hidden, weight = torch.ones(1, 16, device=device), torch.ones(300, 16, device=device)
    banned = np.zeros(300, np.bool_)
    banned[:3] = True
    token, figures, _ = told(answers.answers, hidden, weight, RowQuestion(np.zeros(1, np.int32), bits_of(banned)[None]))
    assert token.tolist() == [3]
    assert figures[0, 3] == pytest.approx(np.log(297), abs=1e-5)
