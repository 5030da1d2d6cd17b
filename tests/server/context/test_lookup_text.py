"""Text outside the window: which of it serves n-gram lookup, and when it is checked for secrets."""

import random

from mercury_lsp.context import lookup_text as module
from mercury_lsp.context.context import CompletionContext, ContextBuilder
from mercury_lsp.context.lookup_text import LookupText, with_rest_of_document
from mercury_lsp.documents.document import Document, Snapshot

SECRET = 'password = "Zq83kfPwm20dKxLw"\n'


def text_of(lines: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return "".join(f"{'    ' * rng.randint(0, 3)}name_{seed}_{n} = call({rng.random()})\n" for n in range(lines))


def document(text: str, uri: str = "file:///a.py") -> Document:
    return Document(uri, "python", 0, text)


def asked(lookup_text: LookupText, snapshot: Snapshot, offset: int, others: tuple[str, ...] = ()) -> CompletionContext:
    return lookup_text.add_to(ContextBuilder().build(snapshot, offset, None), snapshot, others)


def worked(lookup_text: LookupText) -> int:
    """Do all work; returns the number of slices."""
    pieces = 0
    while lookup_text.work():
        pieces += 1
    return pieces


def test_window_and_lookup_text_make_up_the_document():
    text = text_of(900)
    snapshot = document(text).snapshot()
    context = with_rest_of_document(ContextBuilder().build(snapshot, len(text) // 2, None), snapshot)
    shown = "".join((*context.far, context.near, *context.suffix))
    first, last = context.window
    assert context.lookup_text == (*snapshot.chunks[last:], "", *snapshot.chunks[:first], "") and first
    assert shown.endswith("".join(snapshot.chunks[first:last]))


def test_there_is_no_lookup_text_before_the_check_which_runs_in_small_slices(monkeypatch):
    looked_at: list[str] = []
    clean = module.chunk_without_secrets
    monkeypatch.setattr(module, "chunk_without_secrets", lambda *of: (looked_at.append(of[0][of[1]]), clean(*of))[1])
    monkeypatch.setattr(module, "WORK_SLICE_SECONDS", 0.0)
    made, snapshot = LookupText(), document(text_of(900)).snapshot()
    made.update(snapshot)
    assert asked(made, snapshot, 9000).lookup_text == () and made.pending
    assert made.work() and len(looked_at) == 1
    worked(made)
    assert asked(made, snapshot, 9000).lookup_text
    assert sorted(looked_at) == sorted(set(snapshot.chunks)) and not made.pending


def test_lines_that_look_like_secrets_are_removed():
    text = text_of(300) + SECRET + text_of(300)
    snapshot = document(text).snapshot()
    found = "".join(with_rest_of_document(ContextBuilder().build(snapshot, 0, None), snapshot).lookup_text)
    assert "Zq83" not in found and "name_0_250" in found
