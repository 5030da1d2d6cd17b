"""A tokenizer, and examples sampled from one source text."""

import pytest
from mercury_engine.prompt.tokenizer import Tokenizer

from tests.support import tiny
from tests.support.edit_samples import sampled


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codec")
    tiny.tokenizer(900).save(str(folder / "tokenizer.json"))
    return Tokenizer(folder)


@pytest.fixture(scope="session")
def examples(tokenizer):
    return sampled(tokenizer)
