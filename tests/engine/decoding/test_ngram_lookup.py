"""N-gram lookup: drafts for the reader to verify, and an opinion from text that the reader has not read."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.autoregressive.ngram_lookup import LONGEST_MATCH, IndexedText, NgramLookup, NgramMatch
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.errors import Cancelled
from mercury_lab.engine import Engine

from tests.support import tiny

IDS = st.lists(st.integers(0, 5), max_size=30)
BLOCKS = st.lists(IDS, max_size=4)


def run(*blocks: list[int], most: int = 1000) -> IndexedText:
    """Unread text."""
    return IndexedText([np.array(block, np.int32) for block in blocks], most)


@pytest.mark.parametrize(
    ("blocks", "before", "draft"),
    [
        ([], [], []),
        ([], [1], []),
        ([[1, 2, 3, 4, 5]], [9], []),
        ([[1, 2, 3, 4, 5]], [9, 1, 2], [3, 4]),
        ([[1, 2, 3, 4, 5]], [9, 2], [3]),
        ([[1, 2, 3]], [9, 1, 2], [3]),
        ([[9, 1, 2]], [1, 2], []),
        ([[1], [2, 3]], [1, 2], [3]),
    ],
)
def test_the_draft_is_what_followed_an_earlier_occurrence_of_the_last_tokens(blocks, before, draft):
    assert NgramLookup(blocks).find(before).draft == draft


@pytest.mark.parametrize(
    ("blocks", "before", "draft"),
    [
        ([[1, 2, 3], [1, 2, 4], [7]], [1, 2], [4]),
        ([[1, 2, 3, 1, 2, 4]], [1, 2], [4]),
        ([[1, 2, 3]], [1, 2, 5, 1, 2], [5, 1]),
    ],
    ids=["in the last block", "last in a block", "in the text itself"],
)
def test_the_nearest_of_equally_long_matches_counts(blocks, before, draft):
    assert NgramLookup(blocks).find(before).draft == draft


def test_a_longer_match_counts_more_than_a_nearer_one():
    assert NgramLookup([[5, 6, 1, 2, 3], [1, 2, 4]]).find([6, 1, 2]).draft == [3]
    assert NgramLookup([[5, 6, 1, 2, 3]]).find([1, 2, 4, 5, 6, 1, 2]).draft == [3]


def test_a_draft_is_as_long_as_the_match():
    block = [*range(60)]
    for length in (1, 2, 5, LONGEST_MATCH, LONGEST_MATCH + 2):
        repeat = NgramLookup([block]).find([99, *block[:20][-length:]])
        assert len(repeat.draft) == repeat.length == min(length, LONGEST_MATCH)


@given(BLOCKS, IDS, IDS)
def test_a_match_is_the_longest_there_is_and_its_draft_follows_it(blocks, lookup_text, before):
    texts = [*blocks, lookup_text, before]
    found = NgramLookup(blocks, run(lookup_text)).find(before)

    def is_followed(last: list[int]) -> bool:
        return any(text[at : at + len(last)] == last for text in texts for at in range(len(text) - len(last)))

    longest = max((n for n in range(1, min(LONGEST_MATCH, len(before)) + 1) if is_followed(before[-n:])), default=0)
    assert found.length == longest and bool(found.draft) == bool(longest)
    repeated = before[len(before) - longest :] + found.draft
    assert not longest or any(text[at : at + len(repeated)] == repeated for text in texts for at in range(len(text)))


def test_unread_text_gives_each_following_token_its_share():
    found = NgramLookup([[9, 1, 2, 5]], run([7, 8, 1, 2, 3, 0, 8, 1, 2, 4], [8, 1, 2, 4], [8, 1, 2, 4])).find([8, 1, 2])
    assert found.length == 3 and found.draft == [4]
    assert found.unread == {3: 0.25, 4: 0.75}


def test_a_match_in_read_text_gives_no_opinion():
    assert NgramLookup([[1, 2, 5]], run([1, 2, 3])).find([9, 1, 2]).unread == {}
    assert NgramLookup([], run([1, 2, 3])).find([1, 2, 5, 1, 2]).unread == {}
    assert NgramLookup([[2, 5]], run([1, 2, 3])).find([9, 1, 2]).unread == {3: 1.0}


def test_unread_blocks_are_adjacent_unless_an_empty_block_separates_them():
    assert NgramLookup([], run([1, 2], [3, 4])).find([1, 2]).draft == [3, 4]
    assert NgramLookup([], run([1, 2], [], [3, 4])).find([1, 2]) == NgramMatch()


def test_only_the_last_tokens_of_too_much_unread_text_are_searched():
    assert NgramLookup([], run([1, 2, 3], [4, 5, 6], most=4)).find([2]) == NgramMatch()
    assert NgramLookup([], run([1, 2, 3], [4, 5, 6], most=4)).find([4]).draft == [5]


def test_tokens_with_the_same_lower_half_are_distinguished():
    assert NgramLookup([], run([1, (1 << 16) + 1, 7, 1, 8])).find([(1 << 16) + 1]).unread == {7: 1.0}


def test_only_the_nearest_positions_of_a_frequent_token_are_considered(monkeypatch):
    monkeypatch.setattr("mercury_engine.decoding.autoregressive.ngram_lookup.MOST_POSITIONS", 3)
    assert NgramLookup([], run([0, 5, 0, 6, 0, 7, 0, 8])).find([0]).unread == {6: 1 / 3, 7: 1 / 3, 8: 1 / 3}


@pytest.fixture(scope="module")
def writing(tmp_path_factory) -> Engine:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("repeats"), rank=0, seed=1))


REQUEST = FillRequest(near=tiny.SAMPLE[:400], far=(tiny.SAMPLE[400:900],), multiline=True, max_slots=32)


def drafting(monkeypatch, draft: Callable[[Sequence[int]], list[int]]) -> None:
    """Replace the drafts of n-gram lookup."""
    monkeypatch.setattr(NgramLookup, "find", lambda self, before: NgramMatch(draft=draft(before)))


def test_right_drafts_save_steps_and_no_draft_changes_the_text(writing, monkeypatch):
    behind: list[list[int]] = []
    drafting(monkeypatch, lambda before: behind.append([*before]) or [])
    plain = writing.fill(REQUEST)
    drafting(monkeypatch, lambda before: behind[-1][len(before) :])
    right = writing.fill(REQUEST)
    drafting(monkeypatch, lambda before: [7] * 8)
    wrong = writing.fill(REQUEST)
    assert plain.steps > 4
    assert right.steps < plain.steps / 2
    assert right.text == wrong.text == plain.text
    assert right.confidence == pytest.approx(plain.confidence, rel=1e-3)


def test_a_draft_token_that_is_settled_is_not_read_again(writing, monkeypatch):
    behind: list[list[int]] = []
    drafting(monkeypatch, lambda before: behind.append([*before]) or [])
    plain = writing.fill(REQUEST)
    rows: list[int] = []
    read = writing.reader.read_together

    def counted(forwards):
        rows.extend(forward.rows for forward in forwards)
        return read(forwards)

    monkeypatch.setattr(writing.reader, "read_together", counted)
    drafting(monkeypatch, lambda before: behind[-1][len(before) :][:3])
    fill = writing.fill(REQUEST)
    assert fill.text == plain.text
    assert fill.steps < plain.steps / 2 and max(rows[-fill.steps :]) == 1 + 3


TYPED = 400
TYPED_AGAIN = FillRequest(near=tiny.SAMPLE[:TYPED], multiline=True, max_slots=16)


def test_a_long_match_in_unread_text_outweighs_the_reader_and_a_short_one_does_not(writing):
    alone = writing.fill(TYPED_AGAIN)
    long, short = tiny.SAMPLE[TYPED - 100 : TYPED + 200], tiny.SAMPLE[TYPED : TYPED + 200]
    fill = writing.fill(replace(TYPED_AGAIN, lookup_text=(long,)))
    assert len(fill.text) > 20 and tiny.SAMPLE.startswith(fill.text, TYPED)
    assert fill.steps < alone.steps
    assert writing.fill(replace(TYPED_AGAIN, lookup_text=(short,))).text == alone.text


def test_lookup_text_is_not_read_and_is_tokenized_once(writing, monkeypatch):
    chunks = tuple(f"unread_{number} = {number}\n" for number in range(20))
    encoded: list[str] = []
    encode = writing.tokenizer.encode
    monkeypatch.setattr(writing.tokenizer, "encode", lambda text: (encoded.append(text), encode(text))[1])
    writing.cache.clear()
    read = writing.fill(REQUEST).tokens_read
    writing.cache.clear()
    assert writing.fill(replace(REQUEST, lookup_text=chunks)).tokens_read == read > 0
    changed = (*chunks[:7], "unread_7 = 8\n", *chunks[8:])
    writing.fill(replace(REQUEST, lookup_text=changed))
    assert sorted(set(encoded) & {*chunks, *changed}) == sorted(text for text in encoded if text.startswith("unread"))


def test_only_the_nearest_blocks_of_too_much_lookup_text_are_searched(writing, monkeypatch):
    monkeypatch.setattr("mercury_engine.decoding.autoregressive.lookups.LOOKUP_BLOCKS", 2)
    alone, repeat, other = writing.fill(TYPED_AGAIN).text, tiny.SAMPLE[TYPED - 100 : TYPED + 200], "# nothing\n"
    assert writing.fill(replace(TYPED_AGAIN, lookup_text=(other, repeat, other))).text != alone
    assert writing.fill(replace(TYPED_AGAIN, lookup_text=(repeat, other, other))).text == alone


def test_under_a_deadline_lookup_text_is_tokenized_a_few_blocks_per_request(writing, monkeypatch):
    monkeypatch.setattr("mercury_engine.decoding.autoregressive.lookups.NEW_LOOKUP_BLOCKS", 3)
    encoded: list[str] = []
    encode = writing.tokenizer.encode
    monkeypatch.setattr(writing.tokenizer, "encode", lambda text: (encoded.append(text), encode(text))[1])
    chunks = tuple(f"slowly_{number} = {number}\n" for number in range(8))
    request = replace(REQUEST, lookup_text=chunks, deadline_ms=60_000.0)
    for done in (3, 6, 8, 8):
        writing.fill(request)
        assert len([text for text in encoded if text in chunks]) == done
    assert sorted(set(encoded) & set(chunks)) == sorted(chunks)


def test_a_cancelled_fill_stops_tokenizing(writing, monkeypatch):
    request, control = replace(REQUEST, lookup_text=("gone_1\n", "gone_2\n")), Control()
    encoded: list[str] = []
    encode = writing.tokenizer.encode

    def encode_and_cancel(text: str) -> list[int]:
        if text.startswith("gone"):
            encoded.append(text)
            control.cancel.set()
        return encode(text)

    monkeypatch.setattr(writing.tokenizer, "encode", encode_and_cancel)
    with pytest.raises(Cancelled):
        writing.fill(request, control)
    assert encoded == ["gone_2\n"]


@pytest.mark.parametrize("recall", [-0.1, 1.5, float("nan")])
def test_a_share_outside_zero_to_one_is_refused(recall):
    with pytest.raises(ValueError, match="recall"):
        AutoregressiveOptions(recall=recall)


def test_a_text_is_searched_once_and_told_from_another_one_of_its_length(monkeypatch):
    searches, original = [], NgramLookup._searched
    monkeypatch.setattr(NgramLookup, "_searched", lambda self, before: searches.append(1) or original(self, before))
    lookup = NgramLookup([(1, 2, 3), (4, 5, 6)])
    assert [lookup.find(text).draft for text in ((1, 2), (1, 2), (4, 5))] == [[3], [3], [6]]
    assert len(searches) == 2
