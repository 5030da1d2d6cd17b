"""Which draft is verified: repeat or block, how much of it, and that fills stay what the reader writes."""

import math
from dataclasses import replace

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.denoising.draft_choice import DraftChoice, PassCosts, block_features, repeat_features
from mercury_engine.denoising.ngram_lookup import NgramMatch
from mercury_engine.models.network import ReaderState
from mercury_engine.worth import Worth

from tests.support import tiny
from tests.support.drafter import ScriptedDrafter

STATE = ReaderState(None, None, (), 7)
KNOWN = 40


NO_MATCH = NgramMatch()


def chosen(tokens, match=NO_MATCH, most=8, logp=-0.05, **costs):
    drafter = ScriptedDrafter(lambda state, known: tokens, logp=logp)
    return DraftChoice(drafter, PassCosts(**costs)).choose(match, STATE, KNOWN, most), drafter


def test_without_a_repeat_the_block_drafts():
    draft, drafter = chosen([5, 6, 7, 8])
    assert draft.ids == [5, 6, 7, 8] and draft.sources == ["block"] * 4
    assert drafter.asked == [(STATE, KNOWN)]


def test_a_repeat_that_the_block_agrees_with_is_surer():
    alone, _ = chosen([5, 6])
    draft, _ = chosen([5, 6], NgramMatch(2, [5, 6], [3, 3, 3]), block=2.0)
    assert draft.sources[:2] == ["both", "both"]
    assert draft.chances[0] > alone.chances[0]


def test_a_repeats_first_tokens_are_continued_by_the_block():
    draft, _ = chosen([5, 6, 7, 8], NgramMatch(2, [5, 6], [3, 3, 3]), block=2.0)
    assert draft.ids == [5, 6, 7, 8] and draft.sources == ["both", "both", "block", "block"]


def test_where_both_differ_the_surer_one_is_drafted():
    assert chosen([5, 6], NgramMatch(1, [9], [8, 1]))[0].ids[0] == 5
    unsure, _ = chosen([5, 6], NgramMatch(2, [9, 9], [1, 1, 1]), logp=-9.5, row=0.0, block=2.0)
    assert unsure.ids[:2] == [9, 9] and unsure.sources[:2] == ["repeat", "repeat"]


LONG = NgramMatch(12, list(range(50, 62)), [1] * 13)


def test_a_repeat_that_promises_enough_costs_no_pass_of_the_block():
    draft, drafter = chosen([5, 6], LONG)
    assert draft.ids == list(range(50, 58)) and not drafter.asked
    _, drafter = chosen([5, 6], NgramMatch(1, [50], [9, 2]))
    assert drafter.asked


def test_without_a_state_the_repeat_is_drafted_as_far_as_it_is_likely():
    choice = DraftChoice(ScriptedDrafter(lambda state, known: [5, 6]))
    assert choice.choose(LONG, None, KNOWN, 8).ids == LONG.draft[:8]
    assert not choice.choose(NgramMatch(1, [50], [900, 2]), None, KNOWN, 8).ids


def test_a_repeat_is_likelier_the_longer_it_is_and_the_more_matches_agree():
    def chance(length, *support):
        return choose(NgramMatch(length, [9], [*support])).chances[0]

    def choose(match):
        return DraftChoice(ScriptedDrafter(lambda state, known: []), PassCosts(0.0, 0.1)).choose(match, None, KNOWN, 1)

    assert chance(1, 1, 1) < chance(4, 1, 1)
    assert chance(2, 8, 2) < chance(2, 8, 7)


def test_an_unlikely_token_is_not_worth_a_row_and_ends_the_draft():
    assert len(chosen([5, 6, 7, 8], logp=-0.6, row=0.14)[0].ids) == 1
    assert len(chosen([5, 6, 7, 8], logp=-0.6, row=0.05)[0].ids) == 3
    assert not chosen([5, 6, 7, 8], logp=-3.0)[0].ids


def test_a_draft_is_no_longer_than_there_is_room():
    assert chosen([5, 6, 7, 8], most=2)[0].ids == [5, 6]
    draft, drafter = chosen([5, 6, 7, 8], most=0)
    assert not draft.ids and not drafter.asked


@pytest.mark.parametrize("logp", [0.0, -1e-12, -1e9, float("-inf")])
@pytest.mark.parametrize("match", [NgramMatch(1, [9], [4096, 1]), NgramMatch(16, [9], [1, 1])])
def test_features_are_finite_for_any_log_probability(logp, match):
    found = [*repeat_features(0, match), *block_features(3, logp, None, is_repeat=False)]
    for is_repeat in (False, True):
        found += block_features(0, logp, match, is_repeat)
    assert all(map(math.isfinite, found))


@pytest.fixture(scope="module")
def writing(tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("drafted") / "model"))


REQUESTS = [
    FillRequest(near=tiny.SAMPLE[:at], suffix=(tiny.SAMPLE[at:],), multiline=multiline, max_slots=20, effort="high")
    for at in range(40, 800, 40)
    for multiline in (False, True)
]


def filled(engine, request, drafter=None, drafts="block"):
    denoiser = engine.denoiser
    rule, denoiser.rule = (
        denoiser.rule,
        replace(denoiser.rule, drafts=drafts, next_weight=0.0, later_weight=0.0, end_weight=0.0),
    )
    denoiser.draft_choice = None if drafter is None else DraftChoice(drafter)
    try:
        return engine.fill(request)
    finally:
        denoiser.rule, denoiser.draft_choice = rule, None


def test_wrong_drafts_change_no_fill(writing):
    asked = 0
    for request in REQUESTS:
        plain = filled(writing, request, drafts="none")
        drafter = ScriptedDrafter(lambda state, known: [known, 3, known, 4])
        fill = filled(writing, request, drafter)
        assert fill.text == plain.text
        assert fill.confidence == pytest.approx(plain.confidence, rel=1e-3)
        asked += len(drafter.asked)
    assert asked > len(REQUESTS)


def test_right_drafts_take_fewer_passes_for_the_same_fill(writing, monkeypatch):
    runs, run = [], writing.denoiser.run
    monkeypatch.setattr(writing.denoiser, "run", lambda *given: (runs.append(given), run(*given))[1])
    for request in REQUESTS:
        plain = filled(writing, request, drafts="none")
        _, [canvas], context, _ = runs[-1]

        def behind(state, known, written=tuple(canvas.ids), ends=context.ends):
            at = state.position - ends
            assert written[at] == known
            return written[at + 1 : at + 5]

        fill = filled(writing, request, ScriptedDrafter(behind))
        assert fill.text == plain.text
        if plain.steps > 3:
            assert fill.steps < plain.steps
            assert fill.settled_from.get("block", 0) + fill.settled_from.get("both", 0) > 0
            assert sum(fill.settled_from.values()) == sum(plain.settled_from.values())


def test_without_a_drafter_drafts_are_those_from_the_context(writing):
    for request in REQUESTS[:8]:
        with_block, with_context = (filled(writing, request, drafts=drafts) for drafts in ("block", "context"))
        assert (with_block.text, with_block.steps) == (with_context.text, with_context.steps)


def test_fills_that_give_up_early_do_not_ask_the_block(writing):
    drafter = ScriptedDrafter(lambda state, known: [1, 2, 3, 4])
    fill = filled(writing, replace(REQUESTS[1], worth=Worth(wrong_cost=0.0, least=0.0)), drafter)
    assert fill.steps and not drafter.asked


def test_several_candidates_are_drafted_from_the_context(writing):
    drafter = ScriptedDrafter(lambda state, known: [1, 2, 3, 4])
    filled(writing, replace(REQUESTS[1], candidates=2), drafter)
    assert not drafter.asked


def test_watching_shows_the_drafts_before_they_are_verified(writing):
    views = []
    drafter = ScriptedDrafter(lambda state, known: [5, 6, 7, 8])
    fill = filled(writing, replace(REQUESTS[1], on_step=views.append), drafter)
    texts = writing.denoiser.vocabulary.texts
    drafted = [[slot.text for slot in view if slot.state == "draft"] for view in views]
    assert [texts[5], texts[6], texts[7], texts[8]] in drafted
    assert len(views) > fill.steps
    assert not any(slot.state == "draft" for slot in views[-1])


def test_a_draft_in_a_single_line_stops_in_front_of_its_break(writing, monkeypatch):
    line_break = next(i for i, text in enumerate(writing.denoiser.vocabulary.texts) if text == "\n")
    drafts, accept = [], writing.denoiser._accept
    monkeypatch.setattr(
        writing.denoiser, "_accept", lambda *given: (drafts.append((given[0], given[4].ids)), accept(*given))[1]
    )
    for request in REQUESTS:
        filled(writing, request, ScriptedDrafter(lambda state, known: [5, line_break, 6, 7]))
    assert [5] in [ids for asked, ids in drafts if not asked.multiline]
    assert [5, line_break, 6, 7] in [ids for asked, ids in drafts if asked.multiline]
    assert not any(line_break in ids for asked, ids in drafts if not asked.multiline)
