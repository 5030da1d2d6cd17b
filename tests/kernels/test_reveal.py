"""A GPU reveals, inserts and deletes the slots that the host will: the kernels and their twins."""

import numpy as np
import pytest
import torch
from mercury_engine.decoding.diffusion import rules
from mercury_engine.decoding.diffusion.rules import Canvas, linear_schedule
from mercury_engine.device.ahead import numbers_of
from mercury_engine.models.row_answers import Choice, Tokens
from mercury_kernels import reference, reveal
from mercury_kernels.operands import RULE, UNSEEN, Slots

from tests.support.asking import told

DELETE, EXPAND, MASK, END, TOKENS = 9, 10, 11, 12, 13
CASES = {
    "entropy bound": rules.entropy_bound(1.5),
    "threshold": rules.confidence_threshold(0.4),
    "schedule": linear_schedule(5),
    "path planning": rules.path_planning(5, Choice()),
    "path planning that draws": rules.path_planning(5),
    "few tokens": rules.confidence_threshold(0.4, Choice(temperature=0.8, top_k=3)),
    "expand and delete": rules.expand_and_delete(Choice(temperature=0.9, top_p=0.9, confidence="entropy")),
}


@pytest.mark.parametrize("by", [reference, reveal], ids=["twin", "kernel"])
@pytest.mark.parametrize("end", [END, None], ids=["end marker", "no end"])
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_follows_every_rule(device, by, name, end):
    rule, random = CASES[name], np.random.default_rng(0)
    for trial in range(80 if by is reference else 20):
        slots, before, after, padding = random.integers((1, 1, 0, 1), (17, 6, 6, 18))
        logits = random.normal(0, 3, (slots, TOKENS)).astype(np.float32)
        logits[:, MASK] = -np.inf
        logits[slots // 2 :] = logits[: slots - slots // 2]  # equal slots: the leftmost counts
        tokens = Tokens(MASK, end, *((DELETE, EXPAND) if name == "expand and delete" else ()))
        canvas = Canvas(random.choice([MASK, MASK, 3, 4], slots), np.zeros(slots, np.float32), tokens)
        canvas.ids[0] = MASK
        answers, number = told(logits), trial % 5
        expected = rule.step(canvas, rule.choice.draw(answers, np.random.default_rng(trial)), number)
        around = [MASK] * before, [MASK] * after  # no slots
        ids = torch.tensor([*around[0], *canvas.ids, *around[1], *[0] * padding], device=device)
        answer, order = torch.full_like(ids, -1), torch.full_like(ids, UNSEEN)
        answer[before : before + slots], order[:-padding] = torch.arange(slots, device=device), 1
        ahead = rule.ahead(canvas, number, 1, np.random.default_rng(trial))
        limits = numbers_of(ahead, rule.limits(number, slots), 0)
        numbers = torch.tensor(limits, dtype=torch.double, device=device)
        at = Slots(ids, order, answer, numbers[:RULE], numbers[RULE:], MASK)
        figures = np.stack((answers.logit_W, answers.log_sum_W, answers.whole_W, answers.entropy_W), 1)
        fields = answers.token_W, figures, answers.candidate_WK, answers.candidate_logit_WK
        chosen = [torch.from_numpy(each).to(device) for each in fields]
        seen = by.reveal(*(by.draw(*chosen[2:], at) if rule.choice.draws else chosen[:2]), at)
        assert seen[seen >= 0].tolist() == [*around[0], *expected.ids, *around[1]]
        assert (seen >= 0).equal(order < UNSEEN) and ids[order < UNSEEN].equal(seen[seen >= 0].long())
        assert answer[answer >= 0].tolist() == [*range(len(expected))]
        assert (answer[before : before + len(expected)] >= 0).all()
