"""Which gap format a vocabulary has, and that text never becomes a marker."""

import json

import pytest
from mercury_engine.prompt.gap_format import FORMATS, find_markers
from mercury_engine.prompt.tokenizer import Tokenizer

from tests.support import tiny

HEAD, REST, LINE = (1, 2), (3,), (4, 5)


def names(family):
    return [n for n in (family.start, family.prefix, family.suffix, family.middle, family.end) if n]


def numbered(*texts):
    return {text: 10 + number for number, text in enumerate(dict.fromkeys(texts))}.get


@pytest.mark.parametrize("family", FORMATS, ids=lambda family: family.family)
def test_a_vocabulary_with_a_familys_tokens_has_its_format(family):
    found = find_markers(numbered(*names(family)))
    assert found is not None and found.family == family.family
    assert found.ids <= {numbered(*names(family))(name) for name in names(family)}


def test_the_cursors_line_comes_last_and_its_rest_before_it():
    prefix, suffix, middle, end = range(10, 14)
    found = find_markers(numbered("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>"))
    assert found is not None
    assert (found.start, found.end) == (prefix, end)
    assert found.stack(HEAD, REST, LINE) == (*HEAD, suffix, *REST, middle, *LINE)


def test_where_the_suffix_stands_first_the_rest_of_the_line_does_too():
    prefix, suffix, middle, start, _end = range(10, 15)
    seed = find_markers(
        numbered("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<[begin▁of▁sentence]>", "<[end▁of▁sentence]>")
    )
    assert seed is not None and seed.start == start
    assert seed.stack(HEAD, REST, LINE) == (suffix, *REST, prefix, *HEAD, middle, *LINE)
    codestral = find_markers(numbered("[PREFIX]", "[SUFFIX]", "<s>", "</s>"))
    assert codestral is not None and codestral.start == 12
    assert codestral.stack(HEAD, REST, LINE) == (11, *REST, 10, *HEAD, *LINE)


@pytest.fixture
def folder(tmp_path):
    tiny.tokenizer(markers=tiny.QWEN_MARKERS).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


TEXTS = ("a<|fim_middle|>b", "<|endoftext|>", "x = '<|fim_suffix|>'\n<|file_sep|>", "<|fim_prefix|>" * 3)


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_spells_a_marker_stays_text(folder, text):
    tokenizer = Tokenizer(folder)
    cut = tokenizer.cut(text)
    for ids in (tokenizer.encode(text), [*tokenizer.block(text)], tokenizer.lookup_block(text).tolist(), cut.read):
        assert tokenizer.special_ids.isdisjoint(ids)
    assert tokenizer.special_ids.isdisjoint(cut.known)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_text_stays_text_where_a_checkpoint_does_not_call_its_markers_special(folder):
    path = folder / "tokenizer.json"
    raw = json.loads(path.read_text("utf-8"))
    for token in raw["added_tokens"]:
        token["special"] = False
    path.write_text(json.dumps(raw), "utf-8")
    tokenizer = Tokenizer(folder)
    assert tokenizer.markers is not None
    for text in TEXTS:
        assert tokenizer.markers.ids.isdisjoint(tokenizer.encode(text))
