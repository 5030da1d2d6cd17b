"""A gap as clients of the HTTP API describe it, with plain text on both sides, and as the engine sees it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mercury_engine.prompt.chunking import split

from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.context.lookup_text import with_rest_of_document
from mercury_lsp.context.workspace.secret_files import is_secret
from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import LANGUAGES, language, language_of
from mercury_lsp.documents.redaction import chunk_without_secrets
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.fields import TextRequest, require_few

PROMPT_CHARS, SUFFIX_CHARS = 16_000, 8_000
"""Characters around the gap that are used; the model's window is shorter."""

SNIPPET_CHARS = 4_800
"""Characters of other files that the model reads; more serve n-gram lookup."""

MAX_OTHER_CHARS = 200_000
"""Characters of other files that are used."""

MAX_OTHERS = 256
"""Other files that are used."""

MAX_PATH_CHARS = 200

MAX_TOKENS = 8192
"""Most tokens of one text; a negative limit means as many, as in llama.cpp's server. 0 only reads."""

ONE_PARAGRAPH = ("\n\n", "\n \n")
"""Stop texts of Mercury's API for clients that send none."""

MAX_CANDIDATES = 8

BLANK_SUFFIX = "<|endoftext|>"
"""Continue sends it in place of no suffix."""

_JSON = re.compile(r"\s*(?:\[\s*)*\{\s*\"")
"""Recognises the beginning of a JSON document, because most clients name no file."""


@dataclass(frozen=True, slots=True)
class OtherText:
    """A part of another file; the fields are named as llama.cpp's clients send them."""

    text: str = ""
    filename: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """A client's request; equal gaps have equal answers."""

    prompt: str
    suffix: str = ""
    path: str = ""
    language: str = ""
    """LSP's languageId; empty: inferred from the path."""
    others: tuple[OtherText, ...] = ()
    """The most important last."""
    max_tokens: int = 512
    """0 reads the context only."""
    stop: tuple[str, ...] = ()
    deadline_ms: float | None = None
    """Ends all fills but the first, which may have to read all of the context."""
    candidates: int = 1

    def context(self) -> tuple[CompletionContext, Snapshot]:
        """The context without secrets, and both sides as a document."""
        before, after = self.prompt[-PROMPT_CHARS:], self.suffix[:SUFFIX_CHARS]
        if len(before) < len(self.prompt):
            before = before[before.find("\n") + 1 :]
        named = self.language if self.language in LANGUAGES else language_of(self.path)
        if not self.path and named == "plaintext" and _JSON.match(before):
            named = "json"
        snapshot = Document("untitled:", named, 0, before + after).snapshot()
        path = " ".join(self.path.split())[:MAX_PATH_CHARS]
        context = with_rest_of_document(ContextBuilder().build(snapshot, len(before), path or None), snapshot)
        snippets, searched = _parts(self.others)
        return (
            replace(
                context,
                multiline="\n" not in self.stop,
                snippets=snippets,
                lookup_text=(*searched, *context.lookup_text),
                is_redacted=context.is_redacted or _is_secret(self.path),
            ),
            snapshot,
        )


@dataclass(frozen=True, slots=True)
class GapRequest(TextRequest):
    """A gap in any dialect; sampling parameters are ignored, because a gap gets the most likely text."""

    prompt: tuple[str, ...] = ()
    """One text; after `input_prefix` the cursor's line up to the cursor."""
    suffix: str = ""
    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: tuple[OtherText, ...] = ()
    n_cmpl: int = 1
    stop: tuple[str, ...] | None = None
    t_max_predict_ms: float | None = None

    def gap(self, max_tokens: int, stop: tuple[str, ...] = ()) -> Gap:
        """The gap, with the dialect's limit and stop texts if the client sends none. Raises ApiError."""
        if len(self.prompt) > 1:
            raise bad_request("prompt must be a string, or a list of one string", "prompt")
        tokens = max_tokens if self.limit is None else self.limit
        milliseconds = self.t_max_predict_ms or 0.0
        stop = stop if self.stop is None else self.stop
        require_few(stop)
        return Gap(
            self.input_prefix + "".join(self.prompt),
            self.input_suffix + ("" if self.suffix == BLANK_SUFFIX else self.suffix),
            others=self.input_extra,
            max_tokens=min(tokens, MAX_TOKENS) if tokens >= 0 else MAX_TOKENS,
            stop=stop,
            deadline_ms=milliseconds if milliseconds > 0 and tokens else None,
            candidates=max(1, min(max(self.n, self.n_cmpl), MAX_CANDIDATES)),
        )


def _is_secret(path: str) -> bool:
    return bool(path) and is_secret(PurePosixPath(path.replace("\\", "/")))


def _parts(others: Sequence[OtherText]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Blocks of other files for the model to read, and chunks to search, both without secrets."""
    read, searched = list[str](), list[str]()
    room, looked_at = SNIPPET_CHARS, MAX_OTHER_CHARS
    for other in reversed(others[-MAX_OTHERS:]):
        looked_at -= len(other.text)
        if looked_at < 0:
            break
        if _is_secret(other.filename):
            continue
        chunks, language_id = split(with_line_feeds(other.text)), language_of(other.filename)
        clean = [chunk_without_secrets(chunks, number, language_id) for number in range(len(chunks))]
        room -= sum(map(len, clean))
        if room < 0:
            searched[:0] = ["", *clean]
        else:
            title = language(language_id).marks.line(other.filename[:MAX_PATH_CHARS]) if other.filename else ""
            read[:0] = [title, *clean]
    return tuple(filter(None, read)), tuple(searched)
