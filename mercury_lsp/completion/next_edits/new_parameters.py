"""Carries a new parameter into its function's body, where the parameter before it or its default says how.

-def __init__(self, store):           self.store = store        ->  self.clock = clock, as a line below
+def __init__(self, store, clock):
-function check(form) {               for (field of FIELDS) {   ->  for (field of fields) {
+function check(form, fields = FIELDS) {
"""

import re
from collections.abc import Iterator, Sequence

from mercury_engine.places.candidates import KEYWORDS
from mercury_engine.text.brackets import CLOSING, OPENING, code_outside_strings
from tree_sitter import Node

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.signatures import Signature, parameter_name
from mercury_lsp.completion.next_edits.syntax_kind import kind_at
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot

MAX_BODY_CHARS = 10_000
MAX_SITES = 8

_DEFAULT = re.compile(r"[^=]*[^=!<>]=\s*([A-Za-z_]\w*)\Z")
_CONSTANTS = frozenset({"None", "True", "False", "null", "nil", "true", "false", "undefined"})


def body_sites(signature: Signature, hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """The places in a function's body that follow its only new parameter, from the top down."""
    if snapshot.uri != signature.hunk.uri or snapshot.tree is None or not snapshot.is_parsed:
        return
    language_id = signature.hunk.language_id
    names = [parameter_name(each, language_id) for each in signature.new]
    old = {parameter_name(each, language_id) for each in signature.old}
    come = [number for number, name in enumerate(names) if name not in old]
    if len(come) != 1 or len(names) <= len(old) or not names[come[0]].isidentifier():
        return
    (number,) = come
    own = [each for each in hunks if each.uri == snapshot.uri]
    body = _body(signature, snapshot)
    if body is None:
        return
    start, end = (snapshot.source.offset_of_byte(byte) for byte in (body.start_byte, body.end_byte))
    indent = snapshot.source.line_bounds(start)[0]
    start = start if snapshot.slice(indent, start).strip() else indent
    text = snapshot.slice(start, min(end, start + MAX_BODY_CHARS))
    uses = re.finditer(rf"\b{re.escape(names[number])}\b", text)
    if any(kind_at(snapshot, start + use.start()) is not None for use in uses):
        return
    beside = [names[at] for at in (number - 1, number + 1) if 0 <= at < len(names) and names[at].isidentifier()]
    found = [*_defaults(signature.new[number], names[number], start, text, snapshot)]
    found = found or next(
        (sites for each in beside if (sites := _stored(each, names[number], start, text, snapshot))), []
    )
    sites = [site for site in found if not any(each.covers(snapshot.source.line_of(site.start)) for each in own)]
    yield from sites[:MAX_SITES]


def _body(signature: Signature, snapshot: Snapshot) -> Node | None:
    """The body of the function whose header changed."""
    assert snapshot.tree is not None
    first = signature.hunk.offset_in(snapshot)
    last = snapshot.source.offset_at(signature.hunk.end_line + 1, 0)
    at = snapshot.slice(first, last).find(signature.new_text)
    if at < 0:
        return None
    byte = snapshot.source.byte_of(first + at)
    bodies = (node.child_by_field_name("body") for node in reversed(path_to(snapshot.tree, byte + 1)))
    return next((body for body in bodies if body is not None and byte < body.start_byte), None)


def _defaults(parameter: str, name: str, start: int, text: str, snapshot: Snapshot) -> Iterator[EditSite]:
    """The uses, in the body, of the name that a parameter has for a default."""
    default = _DEFAULT.match(parameter)
    if default is None or default[1] in _CONSTANTS or default[1] in KEYWORDS:
        return
    for found in re.finditer(rf"\b{re.escape(default[1])}\b", text):
        kind = kind_at(snapshot, start + found.start())
        if kind is not None and kind.role == "name" and not (kind.is_bound or kind.is_type or kind.is_shorthand):
            yield EditSite(start + found.start(), default[1], name)


def _stored(beside: str, name: str, start: int, text: str, snapshot: Snapshot) -> list[EditSite]:
    """What first stores the parameter beside the new one, with the same for the new one behind it."""
    old = re.escape(beside)
    member = rf"(?:self|this)(?:\.|->)_?{old}_?[ \t]*=[ \t]*{old}[ \t]*;?"
    field = rf"{old}(?:[ \t]*[:=][ \t]*{old})?,"
    lines = (re.finditer(rf"(?m)^(?P<indent>[ \t]*)(?P<text>{each})[ \t]*\r?$", text) for each in (member, field))
    members, fields = lines
    found = next(members, None) or next((each for each in fields if _in_braces(text, each)), None)
    if found is not None:
        added = re.sub(rf"(?<![A-Za-z0-9]){old}(?![A-Za-z0-9])", name, found["text"])
        return [_below(start + found.start("text"), found["text"], found["indent"] + added, snapshot)]
    pairs = re.finditer(rf"\b(?P<text>{old}(?P<sign>[ \t]*[=:][ \t]*){old})\b", text)
    found = next((each for each in pairs if _in_braces(text, each)), None)
    if found is None:
        return []
    return [EditSite(start + found.start(), found["text"], f"{found['text']}, {name}{found['sign']}{name}")]


def _below(start: int, text: str, line: str, snapshot: Snapshot) -> EditSite:
    """A line added below the one whose text begins at `start`."""
    end = snapshot.source.line_bounds(start)[1]
    below = snapshot.source.offset_at(snapshot.source.line_of(start) + 1, 0)
    if below <= end:
        return EditSite(start, text, f"{text}\n{line}")  # the document's last line
    return EditSite(below, "", line + snapshot.slice(end, below))


def _in_braces(text: str, found: re.Match[str]) -> bool:
    """Whether the innermost bracket that is open at a match, in a body that begins with one or none, is a brace."""
    opened: list[str] = []
    before = text[: found.start("text")]
    for at in code_outside_strings(before)[0]:
        if before[at] in OPENING:
            opened.append(before[at])
        elif before[at] in CLOSING and opened:
            opened.pop()
    is_block = text.startswith("{")
    return len(opened) > is_block and opened[-1] == "{"
