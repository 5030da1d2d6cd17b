"""Grammars: the tokens that a JSON schema allows next, by llguidance, which is imported when a request first asks.

Dimensions: V vocabulary.
"""

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from mercury_kernels.installation import install_command

from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.errors import RequestError
from mercury_engine.models.arrays import MaskArray
from mercury_engine.prompt.tokenizer import token_bytes

if TYPE_CHECKING:
    import llguidance

COMPACT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""One line with single blanks, which takes the fewest tokens; small models may write blanks without an end."""

KEPT_SCHEMAS = 8
"""Compiled schemas that are kept: twice as many as texts are written at a time. A large one takes over a second."""

MAX_PROBLEM_CHARS = 200


class Grammars:
    """Makes the grammars of one vocabulary; may be called from any thread."""

    def __init__(self, rules: GapRules) -> None:
        self._rules = rules
        self._compiled = lru_cache(KEPT_SCHEMAS)(self._compile)

    def of(self, schema: str) -> "Grammar":
        """The grammar of a JSON schema. Raises RequestError for a bad one, and where llguidance is missing."""
        return Grammar(self._compiled(schema).deep_copy(), len(self._rules.texts))

    def _compile(self, schema: str) -> "llguidance.LLMatcher":
        """A schema's matcher before any text; raises what `of` raises."""
        try:
            from llguidance import LLMatcher
        except ImportError as error:
            raise RequestError(f"JSON schemas need llguidance: {install_command('http')}") from error
        try:
            grammar = LLMatcher.grammar_from_json_schema(schema, overrides=COMPACT)
        except ValueError as error:
            raise RequestError(f"the JSON schema cannot be used ({_said(str(error))}); correct it") from error
        made = LLMatcher(self._vocabulary, grammar, log_level=0)
        if problem := made.get_error():
            raise RequestError(f"the JSON schema cannot be used ({_said(problem)}); correct it")
        return made

    @cached_property
    def _vocabulary(self) -> "llguidance.LLTokenizer":
        """Takes .7 s, for .3 s of which nothing else in the process runs; with `slices` it would be 1 s."""
        from llguidance import LLTokenizer, TokenizerWrapper

        tokens = TokenizerWrapper(_Bytes(self._rules))
        return LLTokenizer(tokens, len(self._rules.texts), eos_token=self._rules.ends_text.tolist(), slices=[])


def _said(problem: str) -> str:
    """llguidance's message about a schema, in one line, without the backtrace of a panic."""
    is_panic = "panic" in problem.lower() or "backtrace" in problem.lower()
    return "llguidance fails on it" if is_panic else " ".join(problem.split())[:MAX_PROBLEM_CHARS]


class Grammar:
    """How far the text of one request has got in its grammar."""

    def __init__(self, matcher: "llguidance.LLMatcher", size: int) -> None:
        self._matcher, self._size = matcher, size

    def hidden(self) -> MaskArray:
        """bool [V]: the tokens that may not come next."""
        return np.frombuffer(self._matcher.compute_logit_bias(), np.uint8)[: self._size] == 0

    def accept(self, token: int) -> bool:
        """Go on with a token of the text; returns whether the text is complete and nothing may follow."""
        self._matcher.consume_token(token)
        return self._matcher.is_stopped()

    def forced(self) -> list[int]:
        """Tokens of the text that must come next."""
        return self._matcher.compute_ff_tokens()


class _Bytes:
    """A tokenizer as llguidance wants it: with the bytes of every token."""

    bos_token_id = None

    def __init__(self, rules: GapRules) -> None:
        special, name = rules.tokenizer.special_ids, rules.tokenizer.bpe.id_to_token
        self.eos_token_id, self.special_token_ids = int(rules.ends_text[0]), sorted(special)
        self.tokens = [
            text.encode() if number in special else token_bytes(name(number) or "", text)
            for number, text in enumerate(rules.texts)
        ]
        self._encode = rules.tokenizer.encode

    def __call__(self, text: Any) -> list[int]:
        return self._encode(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
