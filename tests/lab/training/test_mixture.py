"""What a step draws: gaps and snippets."""

import random

import pytest
from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import path_block
from mercury_lab.training.data.selection import source_files
from mercury_lab.training.data.sources import SourceFile
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.examples.snippets import snippet_blocks

from tests.support import training_data
from tests.support.training_data import CODE


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    return Mixture(source_files(training_data.corpus(tmp_path_factory.mktemp("mixture") / "corpus")))


def test_snippets_come_from_other_files_behind_their_path_and_share_words():
    others = [SourceFile("toy/a.py", "toy", "python", CODE), SourceFile("toy/z.py", "toy", "python", "zeta = 1\n" * 30)]
    for seed in range(10):
        blocks = snippet_blocks("result = add_13(value, 7)", others, random.Random(seed))
        assert 1 <= len(blocks) <= 2
        path, _, chunk = blocks[0].partition("\n")
        assert path + "\n" == path_block("toy/a.py", "python")
        assert chunk in split(CODE)
        assert "add_13" in chunk
