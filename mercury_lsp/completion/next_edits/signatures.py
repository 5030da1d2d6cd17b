"""Carries a changed parameter list to its declaration elsewhere and to the calls whose new text is certain.

    -def load(path, strict):        a removed argument goes, `strict=1` becomes `exact=1`, arguments change places,
    +def load(path, exact):         and a new one is passed where a parameter has its name

What a call would have to pass is not guessed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercury_engine.places.candidates import KEYWORDS

from mercury_lsp.completion.next_edits.calls import CallSite, calls
from mercury_lsp.completion.next_edits.edit_sites import EditSite, below_first, text_around
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.mirroring import paired
from mercury_lsp.completion.next_edits.parameters import class_around, parameters_around
from mercury_lsp.completion.next_edits.syntax_kind import kind_at
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import share_names

HUNKS_FOLLOWED = 4
MAX_SITES = 8
MAX_CALLS = 100
"""Occurrences of the function's name that are looked at."""

_CONSTRUCTORS = ("__init__", "constructor")
_NAME = re.compile(r"[^\W\d]\w*")
_SELF = re.compile(r"(?:self|cls|&(?:mut )?self|mut self)\Z")
_NAME_FIRST = ("python", "typescript", "typescriptreact", "javascript", "javascriptreact", "rust", "go", "lua")
"""Languages in which a parameter's name stands before its type."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function whose parameters the user changed: as they were written before and after, without `self`."""

    hunk: Hunk
    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    old_text: str
    new_text: str
    """The name with its list, as it stood in the line and as it stands."""
    called: str
    """The name by which it is called: for a constructor its class's."""


def signatures(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[Signature]:
    """The functions of a document whose parameters the latest hunks changed, newest first; hunks come oldest first."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return
    own = [each for each in hunks if each.uri == snapshot.uri]
    for hunk in reversed(own[-HUNKS_FOLLOWED:]):
        after = list(hunk.after_lines)
        for old, new in paired(hunk.before_lines, hunk.after_lines):
            start = snapshot.source.offset_at(hunk.line + after.index(new), 0)
            for was, now in zip(_outer(old), _outer(new), strict=False):
                at = start + now.start
                if was.name == now.name and was.arguments != now.arguments and _is_header(at, snapshot):
                    lists = _without_self(was), _without_self(now)
                    called = class_around(snapshot, at) if now.name in _CONSTRUCTORS else now.name
                    yield Signature(hunk, now.name, *lists, was.text, now.text, called or now.name)


def call_sites(signature: Signature, hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """The declaration and the calls of a function that must follow, as far as their text is certain, nearest first."""
    sites: list[EditSite] = []
    for start, call in _found(signature, hunks, snapshot):
        if (new := _followed(signature, call, start, snapshot)) not in (None, call.text):
            assert new is not None
            sites.append(EditSite(start, call.text, new))
    yield from below_first(sites, signature.hunk.offset_in(snapshot))[:MAX_SITES]


def unfit_calls(signature: Signature, hunks: Sequence[Hunk], snapshot: Snapshot) -> list[int]:
    """The offsets of calls that fitted the old list and don't fit the new one, where what they must pass isn't certain.

    Nearest first.
    """
    required = sum(not _has_default(each) and not each.startswith(("*", "...")) for each in signature.new)
    sites: list[EditSite] = []
    for start, call in _found(signature, hunks, snapshot):
        given = len(call.arguments)
        if given != len(signature.old) or required <= given <= len(signature.new):
            continue
        if any(_keyword(each) or each.startswith(("*", "...")) for each in call.arguments):
            continue
        kind = kind_at(snapshot, start)
        is_call = kind is not None and not (kind.is_defined or kind.is_field)
        if is_call and _followed(signature, call, start, snapshot) is None:
            sites.append(EditSite(start, call.text, call.text))
    return [site.start for site in below_first(sites, signature.hunk.offset_in(snapshot))]


def _found(signature: Signature, hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[tuple[int, CallSite]]:
    """What looks like a declaration or call of the function, on lines that the user hasn't changed, in order."""
    if not share_names(signature.hunk.language_id, snapshot.language_id):
        return
    if snapshot.tree is None or not snapshot.is_parsed:
        return
    source, own = snapshot.source, [each for each in hunks if each.uri == snapshot.uri]
    first, text = text_around(signature.hunk.offset_in(snapshot), snapshot)
    for found, _ in zip(re.finditer(rf"(?<!\w){re.escape(signature.called)}\(", text), range(MAX_CALLS), strict=False):
        start = first + found.start()
        line = source.line_of(start)
        if any(each.covers(line) for each in own):
            continue
        rest = snapshot.slice(start, source.line_bounds(start)[1])
        call = next((each for each in calls(rest) if each.start == 0), None)
        if call is not None:
            yield start, call


def _followed(signature: Signature, call: CallSite, start: int, snapshot: Snapshot) -> str | None:
    """The text of a declaration or call after the change; None if it isn't certain."""
    if (kind := kind_at(snapshot, start)) is None:
        return None
    if kind.is_defined or kind.is_field:
        is_twin = " ".join(call.text.split()) == " ".join(signature.old_text.split())
        return signature.new_text if is_twin else None
    names = [
        [parameter_name(each, signature.hunk.language_id) for each in side] for side in (signature.old, signature.new)
    ]
    arguments = _passed(names[0], names[1], signature, call.arguments, start, snapshot)
    return None if arguments is None else f"{call.name}({', '.join(arguments)})"


def _passed(
    old: Sequence[str],
    new: Sequence[str],
    signature: Signature,
    arguments: tuple[str, ...],
    start: int,
    snapshot: Snapshot,
) -> tuple[str, ...] | None:
    """A call's arguments after the change, by position and by keyword; None if they aren't certain."""
    if len({*old}) < len(old) or len({*new}) < len(new) or any(each.startswith(("*", "...")) for each in arguments):
        return None
    gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
    keywords = [_keyword(each) for each in arguments]
    if len(gone) == len(come) == 1 and old.index(gone[0]) == new.index(come[0]) and len(old) == len(new):
        renamed = f"{come[0]}="
        return tuple(
            renamed + a.partition("=")[2] if k == gone[0] else a for a, k in zip(arguments, keywords, strict=True)
        )
    if any(keywords) or len(arguments) != len(old) or (gone and come):
        return None
    by_name = dict(zip(old, arguments, strict=True))
    if not come:
        return tuple(by_name[name] for name in new)
    if len(come) > 1 or _has_default(signature.new[new.index(come[0])]) or come[0] in arguments:
        return None
    is_known = come[0] in parameters_around(snapshot, start)
    return tuple(by_name.get(name, name) for name in new) if is_known else None


def _without_self(header: CallSite) -> tuple[str, ...]:
    return tuple(each for each in header.arguments if not _SELF.match(each))


def _keyword(argument: str) -> str:
    """The name by which an argument is passed; empty if it is passed by position."""
    found = re.match(r"(\w+)\s*=(?!=)", argument)
    return found[1] if found else ""


def parameter_name(parameter: str, language_id: str) -> str:
    """A parameter's name, without type and default."""
    names = [name for name in _NAME.findall(re.split(r"[=]", parameter)[0]) if name not in KEYWORDS]
    if not names:
        return parameter
    return names[0] if language_id in _NAME_FIRST else names[-1]


def _has_default(parameter: str) -> bool:
    return "=" in parameter or "?" in parameter


def _outer(line: str) -> list[CallSite]:
    """The calls of a line that are within no other one, from left to right."""
    found = sorted(calls(line), key=lambda call: call.start)
    return [
        each
        for each in found
        if not any(o.start < each.start and each.start + len(each.text) <= o.start + len(o.text) for o in found)
    ]


def _is_header(offset: int, snapshot: Snapshot) -> bool:
    kind = kind_at(snapshot, offset)
    return kind is not None and (kind.is_defined or kind.is_field)
