"""Without tree-sitter, words are still edited, and a warning says so once."""

import builtins
import logging
import sys

import pytest
from mercury_lab.training.edits import (
    source,
    tree_facts,
)

from tests.support.edit_samples import SCRIPT, sampled, shop

EDIT_MODULES = ("mercury_lab.training.edits", "mercury_lab.training.examples.edits")


@pytest.fixture
def no_tree_sitter(monkeypatch):
    tree_facts._grammar.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    monkeypatch.setattr(source, "_reported_languages", set())
    yield
    tree_facts._grammar.cache_clear()


def test_without_tree_sitter_words_are_edited_and_it_is_told_once(tokenizer, no_tree_sitter, caplog):
    with caplog.at_level(logging.WARNING):
        found = sampled(tokenizer, 20, shop(SCRIPT, "shop/a.js", "javascript"))
    assert {example.kind for example in found} <= {"rename", "extract", "key"}
    assert any(not example.is_quiet for example in found)
    assert [record.getMessage() for record in caplog.records].count(
        "no tree-sitter grammar for javascript: only edits of single words are sampled"
    ) == 1


def test_python_needs_no_tree_sitter(tokenizer, no_tree_sitter, examples):
    assert sampled(tokenizer, 5) == examples[: len(sampled(tokenizer, 5))]


def test_importing_the_package_imports_no_tree_sitter(monkeypatch):
    found = builtins.__import__

    def guarded(name, *rest):
        assert not name.startswith("tree_sitter")
        return found(name, *rest)

    for name in [name for name in sys.modules if name.startswith(EDIT_MODULES)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", guarded)
    for name in EDIT_MODULES:
        __import__(name)
