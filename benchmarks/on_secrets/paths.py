"""Every text that the model, its caches or the n-gram lookup get of a document, by the way it takes."""

from collections.abc import Iterator
from dataclasses import replace

from mercury_engine.api import FillRequest, RewriteRequest

from mercury_lsp.completion.next_edits.history import Hunk, shown
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewriting import rewrite_request
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.context.lookup_text import with_rest_of_document
from mercury_lsp.context.workspace.snippets import file_snippets
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import language
from mercury_lsp.documents.redaction import around_lines
from mercury_lsp.server.session import is_secret_document
from on_secrets.corpus import Planted

WAYS = ("prompt", "lookup", "snippets", "history", "rewriting")

LINES_AROUND = 24
"""Ordinary lines above and below a planted secret: it lies in the cursor's chunk, beside it, or further off."""

_ORDINARY = {
    "json": '"name_{n}": {n},',
    "yaml": "name_{n}: {n}",
    "toml": "name_{n} = {n}",
    "shellscript": "name_{n}={n}",
}
"""An ordinary line, where it is no assignment of a call."""

SMALL = 120
"""Characters of a window that shows little, so that the rest of the document is looked up."""


def document(planted: Planted) -> tuple[Snapshot, int, int]:
    """A document with a planted secret, and the offsets of its lines."""
    if planted.path:
        snapshot = Document(f"file:///w/{planted.path}", planted.language, 1, planted.text).snapshot()
        return snapshot, 0, len(planted.text)
    line = _ORDINARY.get(planted.language, "name_{n} = compute({n})")
    above = "".join(line.format(n=number) + "\n" for number in range(LINES_AROUND)).replace("{n}", "n")
    text = above + planted.text + "\n" + above
    extension = language(planted.language).extensions[0]
    snapshot = Document(f"file:///w/a.{extension}", planted.language, 1, text).snapshot()
    return snapshot, len(above), len(above) + len(planted.text) + 1


def leaks(planted: Planted) -> dict[str, int]:
    """The ways on which a part of a secret is shown, with the number of texts that show one."""
    found = dict.fromkeys(WAYS, 0)
    snapshot, start, end = document(planted)
    if is_secret_document(snapshot.uri):  # the session neither reads it nor suggests anything in it
        return found
    for way, text in texts(snapshot, start, end):
        found[way] += any(part in text for part in planted.parts)
    return found


def texts(snapshot: Snapshot, start: int, end: int) -> Iterator[tuple[str, str]]:
    """All texts that are shown of a document with a secret in [start, end), by way."""
    last = snapshot.length
    for at in (0, max(0, start - 1), start, (start + end) // 2, end - 1, end, min(end + 60, last), last):
        context = ContextBuilder().build(snapshot, at, "a.py")
        if not context.on_secret:  # nothing is suggested there
            yield "prompt", _of_fill(context.request())
        context = replace(ContextBuilder(SMALL, SMALL).build(snapshot, at, "a.py"), near="", far=(), suffix=())
        yield "lookup", _of_fill(with_rest_of_document(context, snapshot).request())
    path = snapshot.uri.removeprefix("file://")
    snippets = file_snippets(path, path.rpartition("/")[2], snapshot.text, lambda: None)
    yield "snippets", "\n".join(snippet.text for snippet in snippets)
    yield from _next_edit_texts(snapshot, start, end)


def _next_edit_texts(snapshot: Snapshot, start: int, end: int) -> Iterator[tuple[str, str]]:
    source = snapshot.source
    first, last = source.line_of(start), source.line_of(end - 1)
    for line in range(first, last + 1):
        own, below = source.offset_at(line, 0), source.offset_at(line + 1, 0)
        text, around = source.slice(own, below), around_lines(snapshot, own, below)
        for before, after in ((text, ""), ("", text), (text, text[: len(text) // 2] + "\n")):
            hunk = Hunk(snapshot.uri, "a.py", snapshot.language_id, line, before, after, around)
            yield "history", "\n".join(each.removed + each.inserted for each in shown([hunk], "file:///w/b.py"))
    for top, bottom in ((first, first + 1), (first - 2, last + 2), (last, last + 1), (0, 4), (last + 2, last + 6)):
        top, bottom = max(0, top), min(bottom, source.line_of(snapshot.length))
        if top >= bottom:
            continue
        place = Place(snapshot, "a.py", top, top, bottom)
        request = rewrite_request(place, (), None)
        yield "rewriting", _of_rewrite(request) if request is not None else ""


def _of_fill(request: FillRequest) -> str:
    blocks = (*request.far, request.near, *request.suffix)
    return "".join(blocks) + "\n" + "".join(request.lookup_text)


def _of_rewrite(request: RewriteRequest) -> str:
    return "".join((*request.far, request.near, request.text, *request.suffix))
