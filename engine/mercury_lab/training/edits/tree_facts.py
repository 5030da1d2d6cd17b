"""Find the facts of text in other languages with tree-sitter, if its grammar is installed.

Captures of the queries: @function with @name and @parameters; @scope, an unnamed function; @call with @arguments;
@import with @import.name and, for lists of names, @import.list; @typed with @type; @field (the node to remove with the
field) with @field.name and @field.owner, by default the class around it; @class; @statement.
"""

import re
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any

from mercury_lab.training.edits.facts import Call, Facts, Function, Import, ListItem, Typed
from mercury_lab.training.edits.plan import Site, TextSpan, without_item, without_lines
from mercury_lab.training.edits.queries import GRAMMARS

TREE_LANGUAGES = frozenset(GRAMMARS)

MAX_STATEMENT_CHARS = 160

_CALLEE = re.compile(r"(?:new\s+)?(?:(?P<receiver>.*?)(?:\.|::|->|:))?(?P<name>[A-Za-z_$]\w*)\s*", re.S)
_WORD = re.compile(r"[^\W\d]\w*")
_MODIFIERS = frozenset(("mut", "ref", "private", "public", "protected", "readonly", "final", "const"))
_NAME_LAST = frozenset(("java", "c", "cpp"))
_RECEIVERLESS_LANGUAGES = frozenset(("javascript", "typescript", "go"))
"""Languages that call a module's own functions without a receiver."""

Node = Any
"""tree_sitter.Node; the package may be missing."""


@cache
def _grammar(language: str) -> tuple[Any, Any] | None:
    """The parser and the query; None if a package is missing."""
    module, loader, query = GRAMMARS[language]
    try:
        import tree_sitter

        grammar = tree_sitter.Language(getattr(import_module(module), loader)())
    except ImportError:
        return None
    return tree_sitter.Parser(grammar), tree_sitter.Query(grammar, query)


def read(text: str, language: str) -> Facts | None:
    """The facts; None if the language has no installed grammar."""
    loaded = _grammar(language) if language in GRAMMARS else None
    if loaded is None:
        return None
    import tree_sitter

    parser, query = loaded
    tree = parser.parse(text.encode())
    reader = _Reader(text, language)
    for _, captured in tree_sitter.QueryCursor(query).matches(tree.root_node):
        reader.note({name: nodes[0] for name, nodes in captured.items()})
    return reader.finished()


class _Reader:
    """Turns query matches into facts."""

    def __init__(self, text: str, language: str) -> None:
        self.text, self.language, self.facts = text, language, Facts()
        self._chars = None if text.isascii() else _places(text)
        self._classes: list[tuple[int, int, str]] = []
        self._fields: list[tuple[str, str, Site, int]] = []
        self._seen: set[Site] = set()

    def span(self, node: Node) -> TextSpan:
        start, end = node.start_byte, node.end_byte
        return (self._chars[start], self._chars[end]) if self._chars else (start, end)

    def words(self, node: Node) -> str:
        return self.text[slice(*self.span(node))]

    def note(self, match: dict[str, Node]) -> None:
        """Add the fact of one match."""
        match match:
            case {"function": node, "name": name, "parameters": parameters}:
                self._function(node, name, parameters)
            case {"scope": node}:
                self.facts.functions.append(Function("", *self.span(node)))
            case {"call": node, "arguments": arguments}:
                self._call(node, arguments)
            case {"typed": name, "type": kind}:
                self.facts.types.append(Typed(_last_word(self.words(name)), *self.span(kind)))
            case {"import": node, "import.name": name}:
                self._import(node, name, match.get("import.list"))
            case {"field": node, "field.name": name}:
                self._field(node, name, match.get("field.owner"))
            case {"class": node}:
                name = node.child_by_field_name("name") or node.child_by_field_name("type")
                if name:
                    self._classes.append((*self.span(node), self.words(name)))
            case {"statement": node}:
                start, end = self.span(node)
                removal = without_lines(self.text, (start, end))
                if removal and end - start <= MAX_STATEMENT_CHARS:
                    self.facts.statements.append(removal)

    def finished(self) -> Facts:
        """The facts, in text order."""
        facts = self.facts
        named = {function.start for function in facts.functions if function.name}
        facts.functions = [f for f in facts.functions if f.name or f.start not in named]
        facts.functions.sort(key=lambda f: f.start)
        facts.calls.sort(key=lambda c: c.start)
        for owner, name, removal, at in self._fields:
            owner = owner or self._owner(at)
            if owner:
                facts.members.setdefault((owner, name), []).append(removal)
        facts.classes = frozenset(name for _, _, name in self._classes)
        return facts

    def _owner(self, at: int) -> str:
        around = [(end - start, name) for start, end, name in self._classes if start <= at < end]
        return min(around)[1] if around else ""

    def _function(self, node: Node, name: Node, parameters: Node) -> None:
        start, end = self.span(node)
        name_start, name_end = self.span(name)
        items = tuple(self._parameter(child) for child in _entries(parameters) if self.words(child) != "void")
        if any("," in self.text[item.start : item.end].split("(")[0] for item in items):  # Go: a, b int
            return
        word = _last_word(self.words(name))
        first, last = self.span(parameters)
        body = node.child_by_field_name("body")
        bound = 1 if items and items[0].name == "self" else 0
        marker = name_start if node.type == "method_definition" else start
        self.facts.functions.append(
            Function(
                word,
                start,
                end,
                self._owner(start) if word == "constructor" else "",
                name_end - len(word),
                marker,
                any(child.type == "async" for child in node.children[:3]),
                items,
                first + 1,
                last - 1,
                bound,
                self.span(body)[0] if body else last,
                frozenset(item.name for item in items if item.name),
                self.language in _RECEIVERLESS_LANGUAGES and node.type in ("function_declaration", "arrow_function"),
            )
        )

    def _parameter(self, node: Node) -> ListItem:
        start, end = self.span(node)
        text = self.text[start:end]
        words = [word for word in _WORD.findall(text.split("=")[0]) if word not in _MODIFIERS]
        name = words[-1 if self.language in _NAME_LAST else 0] if words else ""
        is_plain = name != "self" and not any(mark in text for mark in ("=", "...", "?", "{"))
        return ListItem(start, end, name, is_plain)

    def _call(self, node: Node, arguments: Node) -> None:
        start, end = self.span(node)
        first, _ = self.span(arguments)
        callee = _CALLEE.fullmatch(self.text, start, first)
        if callee is None or self.text[first] != "(":
            return
        items = []
        for child in _entries(arguments):
            span = self.span(child)
            items.append(ListItem(*span, "", not self.text.startswith(("...", "*"), span[0])))
        parent = node.parent
        awaited = self.span(parent)[0] if parent is not None and parent.type == "await_expression" else -1
        is_base = parent is not None and parent.start_byte == node.start_byte and _reads_part(parent.type)
        is_statement = parent is not None and parent.type in ("expression_statement", "block", "chunk")
        call = Call(
            callee["name"],
            callee["receiver"] or "",
            start,
            end,
            tuple(items),
            first + 1,
            awaited,
            is_statement,
            is_base,
        )
        self.facts.calls.append(call)

    def _import(self, node: Node, name: Node, names: Node | None) -> None:
        span = self.span(node)
        spans = [self.span(child) for child in _entries(names)] if names is not None else []
        if len(spans) > 1:
            inside = self.span(name)
            index = next(i for i, (start, end) in enumerate(spans) if start <= inside[0] < end)
            removal = without_item(self.text, spans, index)
        else:
            removal = without_lines(self.text, span)
        if removal:
            self.facts.imports.append(Import(_last_word(self.words(name).rstrip("\"'")), removal, span[1]))

    def _field(self, node: Node, name: Node, owner: Node | None) -> None:
        siblings = _entries(node.parent)
        spans = [self.span(child) for child in siblings]
        span = self.span(node)
        removal = without_lines(self.text, span)
        lone = len(spans) == 1 and self.language == "cpp"  # A(int x) : x(x): the colon would stay
        if removal is None and span in spans and not lone and "{" not in self.text[slice(*span)]:
            removal = without_item(self.text, spans, spans.index(span))
        if removal and removal not in self._seen:
            self._seen.add(removal)
            self._fields.append((self.words(owner) if owner else "", self.words(name), removal, span[0]))


def _places(text: str) -> list[int]:
    """The character index of every byte."""
    return [*chain.from_iterable([at] * len(char.encode()) for at, char in enumerate(text)), len(text)]


def _entries(node: Node) -> list[Node]:
    return [child for child in node.named_children if "comment" not in child.type]


def _reads_part(kind: str) -> bool:
    return "member" in kind or "field" in kind or "index" in kind or "selector" in kind or "subscript" in kind


def _last_word(text: str) -> str:
    words = _WORD.findall(text)
    return words[-1] if words else ""
