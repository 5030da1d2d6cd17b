"""The tokenizer of a model's files: tokenizer.json, or the byte-level BPE in the metadata of a GGUF file.

The library that builds it ends the process on some damaged files. `tokenizer.ggml.pre` names the expressions that split
text before it is tokenized; they are those of llama-vocab.cpp (github.com/ggml-org/llama.cpp).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from mercury_engine.errors import ModelCorrupt, ModelError, ModelNotFound
from mercury_engine.model_folders import read_json
from mercury_engine.models.gguf.file import GgufFile

SAMPLE = "def f(x):\n\treturn [x + 1, 'é']\n"
"""Tokenized once when a tokenizer is built, because some damage shows only then."""

_AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")
"""Parts of a BPE model that no supported family has. tokenizers 0.23 aborts the process at some values of the first."""


_CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"

_WORDS = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""Contractions, words, digits, runs of signs, line breaks, blanks."""

_SEED_CODER_WORDS = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""The same, but that signs end before a line break."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"

_DEEPSEEK = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+")


@dataclass(frozen=True, slots=True)
class _Split:
    """How text is split, by one expression after another."""

    expressions: tuple[str, ...]
    whole_words: bool = False
    """Whether a word that is a token is not merged from its parts."""
    normalised: bool = False
    """Whether characters are composed first."""

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        steps = [pre_tokenizers.Split(Regex(each), behavior="isolated") for each in self.expressions]
        return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


_LLAMA_3 = _Split((_WORDS % r"\p{N}{1,3}",), whole_words=True)
_QWEN_2 = _Split((_WORDS % r"\p{N}",), normalised=True)
_SEED_CODER = _Split((_SEED_CODER_WORDS,))
_DIGITS = _Split((r"\p{N}", _GPT2))

_SPLITS = {
    **dict.fromkeys(("gpt-2", "gpt2", "mpt", "olmo", "phi-2", "jina-es", "jina-de"), _Split((_GPT2,))),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "dbrx", "smaug-bpe"), _LLAMA_3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2"), _QWEN_2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "codeshell", "command-r"), _DIGITS),
    "seed-coder": _SEED_CODER,
    "default": _Split((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "deepseek-llm": _Split((*_DEEPSEEK, r"\p{N}+")),
    "deepseek-coder": _Split((*_DEEPSEEK, r"\p{N}")),
}
"""By `tokenizer.ggml.pre`."""

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5
"""Kinds of tokens."""


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


def tokenizer_of(file: GgufFile) -> tokenizers.Tokenizer:
    """The file's tokenizer. Raises ModelError for a vocabulary of another kind, ModelCorrupt for a damaged one."""
    split = _split_of(file)
    tokens, kinds = _texts(file, "tokenizer.ggml.tokens"), file.value("tokenizer.ggml.token_type", [], list)
    used = len(tokens)
    while used and kinds[used - 1 : used] == [_UNUSED]:  # padding, which no text should spell
        used -= 1
    merges = (merge.partition(" ") for merge in _texts(file, "tokenizer.ggml.merges"))
    pairs = [(left, right) for left, _, right in merges]
    vocabulary = {token: number for number, token in enumerate(tokens[:used])}

    def build() -> tokenizers.Tokenizer:
        made = tokenizers.Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=split.whole_words))
        if split.normalised:
            made.normalizer = normalizers.NFC()
        made.pre_tokenizer = split.pre_tokenizer()
        made.decoder = decoders.ByteLevel()
        named = [*zip(tokens[:used], kinds, strict=False)]
        made.add_special_tokens([token for token, kind in named if kind == _CONTROL])
        made.add_tokens([AddedToken(token, normalized=False) for token, kind in named if kind == _USER_DEFINED])
        return made

    return built(build, file.path)


def _texts(file: GgufFile, key: str) -> list[str]:
    """A list of texts in the metadata. Raises ModelCorrupt."""
    found = file.required(key)
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ModelCorrupt(f"{file.path}: {key} is no list of texts; fetch it again")
    return found


def _split_of(file: GgufFile) -> _Split:
    kind = file.required("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelError(
            f"{file.path}: its vocabulary is of kind {kind!r}, only byte-level BPE ('gpt2') is supported; choose "
            "another model, such as one of the Qwen2, Qwen3, Llama 3 or SmolLM families"
        )
    name = file.value("tokenizer.ggml.pre", "default")
    if not isinstance(name, str) or name not in _SPLITS:
        raise ModelError(
            f"{file.path}: its vocabulary splits text as {name!r}, which is not supported; choose another model "
            f"(supported: {', '.join(sorted(_SPLITS))})"
        )
    return _SPLITS[name]
