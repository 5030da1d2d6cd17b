"""The tokenizer of tokenizer.json, built by a library that ends the process on some damaged files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers

from mercury_engine.errors import ModelCorrupt, ModelError, ModelNotFound
from mercury_engine.model_folders import read_json

SAMPLE = "def f(x):\n\treturn [x + 1, 'é']\n"
"""Tokenized once when a tokenizer is built, because some damage shows only then."""

_AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")
"""Parts of a BPE model that no supported family has. tokenizers 0.23 aborts the process at some values of the first."""


def read(path: Path) -> tokenizers.Tokenizer:
    """The tokenizer. Raises ModelNotFound and ModelCorrupt."""
    if not path.is_file():
        raise ModelNotFound(f"no tokenizer.json in {path.parent}; fetch the model again")
    if problem := _problem(read_json(path)):
        raise ModelCorrupt(f"{path} cannot be used: {problem}; fetch the model again")
    return built(lambda: tokenizers.Tokenizer.from_file(str(path)), path)


def built(build: Callable[[], tokenizers.Tokenizer], path: Path) -> tokenizers.Tokenizer:
    """The tokenizer that a call of the library builds, once it has read a text. Raises ModelCorrupt.

    The library raises bare Exceptions, and its panics are no Exceptions at all.
    """
    try:
        made = build()
        made.decode(made.encode(SAMPLE).ids)
    except (KeyboardInterrupt, SystemExit, ModelError):
        raise
    except BaseException as error:
        raise ModelCorrupt(f"the tokenizer of {path} is damaged ({error}); fetch the model again") from error
    return made


def _problem(raw: Any) -> str | None:
    model = raw.get("model") if isinstance(raw, dict) else None
    if not isinstance(model, dict):
        return "it has no model"
    if model.get("type", "BPE") != "BPE":
        return f"its model is of type {model['type']!r}, only BPE is supported"
    found = [f"its {name} is {model[name]!r}, which is not supported" for name in _AFFIXES if model.get(name)]
    return found[0] if found else None
