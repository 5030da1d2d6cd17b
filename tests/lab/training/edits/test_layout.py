"""Edits are laid out as the server lays out its requests for a next edit."""

import ast
import random

import pytest
from mercury_engine.prompt.edit_layout import (
    HISTORY_CHARS,
    LINE_CHARS,
    EditHunk,
    edit_blocks,
    history_block,
    region_block,
)
from mercury_lab.training.edits import (
    python_facts,
    source,
)
from mercury_lab.training.examples.gaps import GapSettings

from tests.support.edit_samples import SHOP, sampled, sampler, shop


def test_blocks_are_comments_and_plain_code_newest_edit_last():
    history = [
        EditHunk(0, "def load(path):\n", "def load(path, encoding):\n"),
        EditHunk(9, "a = load(x)\nb = 1\n", 'a = load(x, "utf-8")\nb = 1\n', path="tools/show.py"),
    ]
    recent, region = edit_blocks(history, "    c = load(y)\n", "python")
    assert recent == (
        "# recent edits:\n# @@\n# -def load(path):\n# +def load(path, encoding):\n"
        '# @@ tools/show.py\n# -a = load(x)\n# +a = load(x, "utf-8")\n'
    )
    assert region.endswith("\n    c = load(y)\n")
    assert region.startswith("# ")
    assert edit_blocks([], "x\n", "python") == (region_block("x\n", "python"),)


@pytest.mark.parametrize(("language", "opening"), [("go", "// +x\n"), ("lua", "-- +x\n"), ("css", "/* +x */\n")])
def test_edits_are_told_in_comments_of_the_language(language, opening):
    assert history_block([EditHunk(0, "", "x\n")], language).endswith(opening)


def test_edits_can_be_read_back_from_their_block(examples, tokenizer):
    for example in examples:
        block = history_block(example.history, "python")
        assert tokenizer.decode(tokenizer.encode(block)) == block
        told = [line.removeprefix("# ") for line in block.splitlines()[1:]]
        groups = "\n".join(told).split("@@")[1:]
        for group, change in zip(reversed(groups), reversed(example.history), strict=False):
            lines = group.split("\n")[1:]
            removed, inserted = ([line[1:] for line in lines if line.startswith(mark)] for mark in ("-", "+"))
            ours, theirs = change.removed.splitlines(), change.inserted.splitlines()
            assert "\n".join(removed) in "\n".join(ours)
            assert "\n".join(inserted) in "\n".join(theirs)
            assert removed or inserted


def test_blocks_keep_their_limits():
    many = [EditHunk(0, f"old_{n} = {n}\n", f"new_{n} = {n}\n") for n in range(100)]
    block = history_block(many, "python")
    assert len(block) <= HISTORY_CHARS
    assert "new_99" in block
    assert "new_0 " not in block
    assert block.index("new_98") < block.index("new_99")
    rows = [EditHunk(0, "".join(f"row {n}\n" for n in range(90)), "".join(f"line {n}\n" for n in range(90)))]
    block = history_block(rows, "css")
    assert len(block) <= HISTORY_CHARS
    assert "-row 0" in block
    assert "+line 0" in block
    wide = history_block([EditHunk(0, "a" * 500 + "b\n", "a" * 500 + "c\n")], "python")
    assert len(wide) <= HISTORY_CHARS
    assert max(map(len, wide.splitlines())) <= LINE_CHARS + 4
    assert wide.splitlines()[-1].endswith("ac")


def test_edits_are_laid_out_as_the_document_stands(tokenizer):
    drawn = sampler(tokenizer, 4, GapSettings(prefix_chars=400, suffix_chars=200))
    count = 0
    for example in drawn.examples(shop(), 30):
        far, near, suffix = drawn.surroundings(example)
        (start, end), text = example.region, example.current
        blocks = edit_blocks(example.history, text[start:end], "python")
        assert tuple(far[-len(blocks) :]) == blocks
        above = "".join(block for block in far[: -len(blocks)] if not block.startswith("# path: "))
        assert text[:start].endswith(above + near)
        assert text[end:].startswith("".join(suffix))
        count += 1
    assert count > 20


def test_the_same_seed_draws_the_same_edits(tokenizer):
    first, second = ([*sampler(tokenizer, 5).examples(shop(), 8)] for _ in range(2))
    assert first == second
    assert first


def test_a_file_is_parsed_once_while_it_is_kept(tokenizer, monkeypatch):
    read = []
    parse = python_facts.read
    monkeypatch.setattr(source.python_facts, "read", lambda text: read.append(1) or parse(text))
    drawn = sampler(tokenizer, 0)
    assert [*drawn.examples(shop(), 4)]
    assert [*drawn.examples(shop(), 4)]
    assert len(read) == 1
    assert [*drawn.examples(shop(SHOP + "\nx = 1\n"), 4)]
    assert len(read) == 2


def test_a_long_file_is_cut_between_definitions(tokenizer):
    long = "".join(SHOP.replace("Shop", f"Shop{n}").replace('"""A shop."""\n', "") for n in range(20))
    for seed in range(20):
        text = source.cut_source(shop(long), random.Random(seed)).text
        assert len(text) <= source.MAX_SOURCE_CHARS
        assert ast.parse(text)
        assert text in long


def test_text_that_is_no_python_and_a_file_without_anything_draw_what_they_can(tokenizer):
    broken = shop(SHOP.replace("def show(", "def show(("))
    assert {example.kind for example in sampled(tokenizer, 10, broken)} <= {"rename", "extract", "key"}
    assert sampled(tokenizer, 3, broken)
    assert sampled(tokenizer, 3, shop("# nothing\n")) == []
    assert sampled(tokenizer, 3, shop("")) == []
