"""Carries `async` on: calls of a function that became async are awaited, and functions that await become async.

    -def wait(self):           def move(self, x):        ->  async def move(self, x):
    +async def wait(self):         self.wait()           ->      await self.wait()

A call that hands the pending result on (returned in JavaScript, given to what waits for it, put into a list) stays,
and so does every call whose function isn't certain: types aren't known here, only names.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from mercury_lsp.completion.next_edits.edit_sites import EditSite, below_first, joined, text_around
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.mirroring import paired
from mercury_lsp.completion.next_edits.syntax_kind import THIS, SyntaxKind, kind_at
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language, share_names

HUNKS_FOLLOWED = 4
MAX_SITES = 8
MAX_CALLS = 100
"""Occurrences of the function's name that are looked at."""

MAX_SITE_LINES = 20
"""Lines from a function's header to its last call, which are one edit."""

_SCRIPTS = ("javascript", "javascriptreact", "typescript", "typescriptreact")
_LANGUAGES = ("python", "rust", *_SCRIPTS)

_ASYNC = re.compile(r"\basync\b")
_AWAIT = re.compile(r"\bawait\b")
_NAME = re.compile(r"(?:\bdef|\bfn|\bfunction)\s+(\w+)|(\w+)\s*[=:]\s*async\b|\basync\s+(\w+)\s*[<(]")

_FUNCTIONS = frozenset(
    {"function_definition", "function_item", "function_declaration", "function_expression", "arrow_function"}
    | {"method_definition"}
)
_CLASSES = ("class_definition", "class_declaration", "class", "impl_item", "trait_item")
_OPAQUE = frozenset({"lambda", "closure_expression", "async_block", "generator_function", "macro_invocation"})
"""Nodes inside a function whose awaits aren't the function's own, or can't be."""

_CALLS = frozenset({"call", "call_expression"})
_MEMBERS = frozenset({"attribute", "member_expression", "field_expression", "subscript", "subscript_expression"})
_AWAITS = frozenset({"await", "await_expression"})
_SETTLING = frozenset({b"then", b"catch", b"finally"})
_USES = frozenset(
    {"expression_statement", "assignment", "assignment_expression", "augmented_assignment", "variable_declarator"}
    | {"let_declaration", "binary_operator", "binary_expression", "boolean_operator", "comparison_operator"}
    | {"not_operator", "unary_expression", "unary_operator", "parenthesized_expression", "if_statement"}
    | {"while_statement", "if_expression", "try_expression", "for_statement"}
)
"""Parents of a call that use its result."""
_RETURNS = frozenset({"return_statement", "return_expression", "block"})
"""Further ones, but in JavaScript, where a function may return what another one promises."""

_WAITING = frozenset(
    {"as_completed", "create_task", "ensure_future", "gather", "run", "run_coroutine_threadsafe", "run_until_complete"}
    | {"shield", "start_soon", "submit", "wait", "wait_for"}
)
"""Functions of Python that take what isn't awaited yet."""

_TESTS = re.compile(r"(?:test|it|before|after|beforeEach|afterEach|beforeAll|afterAll)(?:\.\w+)?\Z")
"""Functions that wait for the function they are given."""


@dataclass(frozen=True, slots=True)
class AsyncFunction:
    """A function that the user made async."""

    hunk: Hunk
    name: str
    owner: str
    """Its class or trait; empty for a plain function."""


def made_async(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[AsyncFunction]:
    """The functions of a document that the latest hunks made async, newest first; hunks come oldest first."""
    if snapshot.tree is None or not snapshot.is_parsed or snapshot.language_id not in _LANGUAGES:
        return
    own = [each for each in hunks if each.uri == snapshot.uri]
    for hunk in reversed(own[-HUNKS_FOLLOWED:]):
        after = list(hunk.after_lines)
        for old, new in paired(hunk.before_lines, hunk.after_lines):
            found = _NAME.search(new)
            if found is None or not _ASYNC.search(new) or _ASYNC.search(old):
                continue
            group = found.lastindex or 1
            start = snapshot.source.offset_at(hunk.line + after.index(new), 0) + found.start(group)
            around = _nodes_at(snapshot, start)
            owner = next((_name_of(node) for node in reversed(around) if node.type in _CLASSES), "")
            is_plain = any(node.type in _FUNCTIONS and not _is_name_of(node, around[-1]) for node in around)
            yield AsyncFunction(hunk, found[group], "" if is_plain else owner)


def awaiting_sites(function: AsyncFunction, hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """An edit for every function that calls this one: its calls awaited, itself made async; nearest first."""
    if not share_names(function.hunk.language_id, snapshot.language_id) or snapshot.language_id not in _LANGUAGES:
        return
    if snapshot.tree is None or not snapshot.is_parsed:
        return
    is_own = function.hunk.uri == snapshot.uri
    if not is_own and not function.owner and not _is_imported(function.name, snapshot):
        return
    own = [each for each in hunks if each.uri == snapshot.uri]
    at = function.hunk.offset_in(snapshot)
    first, text = text_around(at, snapshot)
    callers: dict[int, tuple[Node, list[EditSite]]] = {}
    for found, _ in zip(re.finditer(rf"(?<!\w){re.escape(function.name)}\(", text), range(MAX_CALLS), strict=False):
        start = first + found.start()
        if any(each.covers(snapshot.source.line_of(start)) for each in own):
            continue
        kind = kind_at(snapshot, start)
        if kind is None or kind.is_defined or kind.is_field or not _is_call_of(function, kind, start, snapshot):
            continue
        path = _nodes_at(snapshot, start)
        caller, call = _caller(path), _call(path)
        if caller is not None and call is not None and (awaited := _awaited(call, snapshot)):
            callers.setdefault(caller.start_byte, (caller, []))[1].extend(awaited)
    sites = [site for caller, calls in callers.values() if (site := _with_header(caller, calls, snapshot)) is not None]
    yield from below_first(sorted(sites, key=lambda site: site.start), at)[:MAX_SITES]


def unmarked(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """Headers of functions that await, since the latest hunk, and aren't async."""
    own = [each for each in hunks[-1:] if each.uri == snapshot.uri]
    if not own or snapshot.tree is None or not snapshot.is_parsed or snapshot.language_id not in _LANGUAGES:
        return
    (hunk,) = own
    if len(_AWAIT.findall(hunk.after)) <= len(_AWAIT.findall(hunk.before)):
        return
    seen = set()
    for number, line in enumerate(hunk.after_lines):
        for found in _AWAIT.finditer(line):
            path = _nodes_at(snapshot, snapshot.source.offset_at(hunk.line + number, 0) + found.start())
            caller = _caller(path) if any(node.type in _AWAITS for node in path) else None
            if caller is None or caller.start_byte in seen or _is_async(caller):
                continue
            seen.add(caller.start_byte)
            if header := _header(caller, snapshot):
                yield _whole(joined(header, snapshot), snapshot)


def _is_call_of(function: AsyncFunction, kind: SyntaxKind, start: int, snapshot: Snapshot) -> bool:
    """Whether a call is certainly one of the function: by its class around the call, or by the receiver's name."""
    if kind.role != "member":
        return kind.role == "name" and not function.owner
    if not function.owner:
        return False
    if kind.owner == THIS:
        around = [node for node in _nodes_at(snapshot, start) if node.type in _CLASSES]
        return bool(around) and _name_of(around[-1]) == function.owner
    return _plain(kind.owner) == _plain(function.owner)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _is_imported(name: str, snapshot: Snapshot) -> bool:
    assert snapshot.tree is not None
    imports, word = language(snapshot.language_id).imports, re.compile(rf"\b{re.escape(name)}\b".encode())
    return any(node.type in imports and word.search(node.text or b"") for node in snapshot.tree.root_node.children)


def _nodes_at(snapshot: Snapshot, offset: int) -> list[Node]:
    """The nodes around the token at an offset, the root first."""
    assert snapshot.tree is not None
    return path_to(snapshot.tree, snapshot.source.byte_of(offset) + 1)


def _call(path: Sequence[Node]) -> Node | None:
    """The call of the name at the end of a path."""
    inner = path[-1]
    for node in path[-2::-1]:
        if node.type in _CALLS:
            return node if node.child_by_field_name("function") == inner else None
        if node.type not in _MEMBERS and node.type != "scoped_identifier":
            return None
        inner = node
    return None


def _caller(path: Sequence[Node]) -> Node | None:
    """The innermost function around a token, if what it awaits may be awaited in it."""
    for number, node in reversed(list(enumerate(path))):
        if node.type in _OPAQUE:
            return None
        if node.type in _FUNCTIONS:
            return node if _may_be_async(node, path[:number]) else None
    return None


def _may_be_async(function: Node, around: Sequence[Node]) -> bool:
    """Whether a function can become async without its callers being asked: no constructor, property or callback."""
    if _is_async(function):
        return True
    name = _name_of(function)
    if name == "constructor" or name.startswith("__") or any(each.type in ("get", "set") for each in function.children):
        return False
    if around and around[-1].type == "decorated_definition":
        marks = [each.text or b"" for each in around[-1].children if each.type == "decorator"]
        if any(b"property" in mark or b"setter" in mark for mark in marks):
            return False
    if around and around[-1].type == "arguments":
        callee = around[-2].child_by_field_name("function")
        return callee is not None and bool(_TESTS.match((callee.text or b"").decode("utf-8", "replace")))
    return True


def _is_async(function: Node) -> bool:
    modifiers = [each for each in function.children if each.type in ("async", "function_modifiers")]
    return any(b"async" in (each.text or b"") for each in modifiers)


def _awaited(call: Node, snapshot: Snapshot) -> list[EditSite]:
    """The insertions that await a call; none if it is awaited, or if its pending result is handed on."""
    parent, is_rust = call.parent, snapshot.language_id == "rust"
    if parent is None:
        return []
    is_part = parent.type in _MEMBERS and parent.children[0] == call
    if is_part and any(child.text in _SETTLING for child in parent.named_children):
        return []
    if is_rust and is_part and any(child.text == b"await" for child in parent.named_children):
        return []
    hands_on = parent.type in _RETURNS and snapshot.language_id in _SCRIPTS
    is_used = parent.type in _USES or parent.type in _RETURNS or _is_taken(parent)
    if hands_on or not (is_part or is_used):
        return []
    if is_rust:
        return [_insertion(call.end_byte, ".await", snapshot)]
    opening, closing = ("(await ", ")") if is_part else ("await ", "")
    first = _insertion(call.start_byte, opening, snapshot)
    return [first, _insertion(call.end_byte, closing, snapshot)] if closing else [first]


def _is_taken(parent: Node) -> bool:
    """Whether a call in Python is formatted, or the argument of a function that takes a result."""
    if parent.type != "argument_list" or parent.parent is None:
        return parent.type == "interpolation"
    called = parent.parent.child_by_field_name("function")
    name = re.search(rb"\w*\Z", called.text or b"") if called is not None else None
    return name is not None and name[0].decode("utf-8", "replace") not in _WAITING


def _with_header(caller: Node, calls: Sequence[EditSite], snapshot: Snapshot) -> EditSite | None:
    """One edit of a function's header and calls; None if they are too far apart, or the header can't be changed."""
    header = [] if _is_async(caller) else _header(caller, snapshot)
    if not header and not _is_async(caller):
        return None
    found = _whole(joined(sorted([*header, *calls], key=lambda site: site.start), snapshot), snapshot)
    return found if found.old.count("\n") < MAX_SITE_LINES else None


def _whole(site: EditSite, snapshot: Snapshot) -> EditSite:
    """The edit with the name behind it, so that there is always something to replace."""
    name = re.match(r"\w*", snapshot.slice(site.end, snapshot.source.line_bounds(site.end)[1]))
    rest = name[0] if name else ""
    return EditSite(site.start, site.old + rest, site.new + rest)


def _header(function: Node, snapshot: Snapshot) -> list[EditSite]:
    """The insertions that make a function async, with what it returns in TypeScript; none if it isn't clear how."""
    before: Node | None = function
    if function.type == "method_definition":
        before = function.child_by_field_name("name")
    elif function.type == "function_item":
        is_marked = any(each.type == "function_modifiers" for each in function.children)
        before = None if is_marked else next((each for each in function.children if each.type == "fn"), None)
    if before is None:
        return []
    sites = [_insertion(before.start_byte, "async ", snapshot)]
    returned = function.child_by_field_name("return_type")
    kind = returned.named_child(0) if returned is not None and snapshot.language_id in _SCRIPTS else None
    if kind is not None and not (kind.text or b"").startswith(b"Promise"):
        sites += [_insertion(kind.start_byte, "Promise<", snapshot), _insertion(kind.end_byte, ">", snapshot)]
    return sites


def _insertion(byte: int, text: str, snapshot: Snapshot) -> EditSite:
    return EditSite(snapshot.source.offset_of_byte(byte), "", text)


def _name_of(node: Node) -> str:
    """The name of a function, class or trait, or of the type that is implemented."""
    named = node.child_by_field_name("name") or node.child_by_field_name("type")
    return (named.text or b"").decode("utf-8", "replace") if named is not None else ""


def _is_name_of(function: Node, leaf: Node) -> bool:
    return function.child_by_field_name("name") == leaf
