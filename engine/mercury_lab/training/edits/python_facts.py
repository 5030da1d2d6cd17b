"""Find the facts of Python text with the standard library's parser."""

import ast
import re
from dataclasses import dataclass, field

from mercury_lab.training.edits.facts import Call, Chain, Facts, Function, Import, ListItem, Typed
from mercury_lab.training.edits.plan import Site, line_start, without_item, without_lines
from mercury_lab.training.edits.python_text import NodeOffsets, parsed

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise, ast.Assert, ast.Delete)
_BLANK = re.compile(r"\s*")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.ExceptHandler)
_BLOCKS = frozenset((*_SCOPES, *_COMPOUND))
_OTHERS = (ast.Lambda, ast.Call, ast.Import, ast.ImportFrom, ast.AnnAssign, ast.Name, ast.Attribute)
_VISITED = frozenset((*_SCOPES, *_OTHERS))


def read(text: str) -> Facts:
    """The facts of a text; empty if this Python cannot parse it."""
    tree = parsed(text)
    if tree is None:
        return Facts()
    reader = _Reader(text)
    reader.walk(tree)
    return reader.finished()


@dataclass(frozen=True, slots=True)
class _Place:
    """The surroundings of a node."""

    function: _Definition | None = None
    top: ast.stmt | None = None
    """The statement in the function's body that contains the node."""
    owner: ast.ClassDef | None = None
    parent: ast.AST | None = None


@dataclass(slots=True)
class _Locals:
    names: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    """Attributes that are assigned, as text."""


class _Reader:
    """Walks a tree and collects its facts."""

    def __init__(self, text: str) -> None:
        self.text, self.facts = text, Facts()
        offsets = NodeOffsets(text)
        self.at, self.span = offsets.at, offsets.span
        self._locals: dict[int, _Locals] = {}
        self._classes: set[str] = set()

    def walk(self, tree: ast.Module) -> None:
        """Visit all nodes except those in formatted strings, whose positions are wrong before Python 3.12."""
        stack: list[tuple[ast.AST, _Place]] = [(node, _Place()) for node in reversed(tree.body)]
        self._statements(tree.body)
        while stack:
            node, place = stack.pop()
            kind = type(node)
            if kind is ast.JoinedStr:
                continue
            inner = self._visit(node, place) if kind in _VISITED else place
            if kind in _BLOCKS:
                self._blocks(node)
            below = _Place(inner.function, inner.top, inner.owner, node)
            in_function = inner.function is node
            for name in node._fields:
                child = getattr(node, name)
                if isinstance(child, ast.AST):
                    stack.append((child, below))
                elif isinstance(child, list):
                    for one in child:
                        if in_function and name == "body":
                            stack.append((one, _Place(inner.function, one, inner.owner, node)))
                        elif isinstance(one, ast.AST):
                            stack.append((one, below))

    def finished(self) -> Facts:
        """The facts, in text order."""
        facts = self.facts
        facts.classes = frozenset(self._classes)
        facts.functions.sort(key=lambda f: f.start)
        facts.calls.sort(key=lambda c: c.start)
        facts.chains = [
            chain
            for chain in facts.chains
            if not any(chain.text.startswith(s) for s in self._locals[chain.function].stored)
        ]
        for key, found in self._arguments().items():
            if key in facts.members:
                facts.members[key] += found
        return facts

    def _visit(self, node: ast.AST, place: _Place) -> _Place:
        """Collect a node's fact; returns the surroundings of its children."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, place)
                return _Place(node, None, None, node)
            case ast.Lambda():
                self.facts.functions.append(Function("", *self.span(node)))
            case ast.ClassDef():
                self._class(node)
                return _Place(None, None, node, node)
            case ast.Call():
                self._call(node, place)
            case ast.Import() | ast.ImportFrom() if place.parent is None:
                self._import(node)
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                self.facts.types.append(Typed(name, *self.span(node.annotation)))
            case ast.Name(id=name) if place.function and not isinstance(node.ctx, ast.Load):
                self._locals[self._key(place.function)].names.add(name)
            case ast.Attribute() if place.function and place.top:
                self._chain(node, place)
        return place

    def _blocks(self, node: ast.AST) -> None:
        for name in ("body", "orelse", "finalbody"):
            self._statements(getattr(node, name, []))

    def _key(self, node: _Definition) -> int:
        return self.at(node.lineno, node.col_offset)

    def _function(self, node: _Definition, place: _Place) -> None:
        start, end = self.span(node)
        owner = place.owner if isinstance(place.parent, ast.ClassDef) else None
        name_at = self.text.find(node.name, start + len("def"))
        if isinstance(node, ast.AsyncFunctionDef):
            name_at = self.text.find(node.name, start + len("async def"))
        items, static = self._parameters(node.args), any(_named(d) == "staticmethod" for d in node.decorator_list)
        bound = 1 if owner and items and items[0].name in ("self", "cls") and not static else 0
        opening = self.text.find("(", name_at) + 1
        names = self._locals.setdefault(self._key(node), _Locals()).names
        names |= {item.name for item in items[bound:]}
        self.facts.functions.append(
            Function(
                node.name,
                start,
                end,
                owner.name if owner else "",
                name_at,
                start,
                isinstance(node, ast.AsyncFunctionDef),
                items,
                opening,
                self.text.find(")", items[-1].end if items else opening),
                bound,
                self.span(node.body[0])[0],
                names,  # grows while the body is walked
                owner is None,
            )
        )
        if node.returns:
            self.facts.types.append(Typed(node.name, *self.span(node.returns)))
        if owner and node.name == "__init__":
            self._constructor(node, owner, items)

    def _parameters(self, arguments: ast.arguments) -> tuple[ListItem, ...]:
        items = []
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(plain, defaults, strict=True)]
        if arguments.vararg:
            pairs.append((arguments.vararg, None))
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if arguments.kwarg:
            pairs.append((arguments.kwarg, None))
        for arg, default in pairs:
            start, end = self.span(arg)
            if arg.annotation:
                self.facts.types.append(Typed(arg.arg, *self.span(arg.annotation)))
            while start and self.text[start - 1] == "*":
                start -= 1
            end = self.span(default)[1] if default else end
            items.append(ListItem(start, end, arg.arg, arg in plain and default is None))
        return tuple(items)

    def _class(self, node: ast.ClassDef) -> None:
        self._classes.add(node.name)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and len(node.body) > 1:
                self._member(node.name, statement.target.id, without_lines(self.text, self.span(statement)))

    def _constructor(self, node: _Definition, owner: ast.ClassDef, items: tuple[ListItem, ...]) -> None:
        spans = [item.span for item in items]
        for index, item in enumerate(items[1:], 1):
            self._member(owner.name, item.name, without_item(self.text, spans, index))
        if len(node.body) < 2:
            return
        for statement in node.body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)])
                    | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name))
                ):
                    self._member(owner.name, name.lstrip("_"), without_lines(self.text, self.span(statement)))

    def _member(self, owner: str, name: str, removal: Site | None) -> None:
        if removal:
            self.facts.members.setdefault((owner, name), []).append(removal)

    def _call(self, node: ast.Call, place: _Place) -> None:
        match node.func:
            case ast.Name(id=name):
                receiver = ""
            case ast.Attribute(attr=name, value=value):
                receiver = self.text[slice(*self.span(value))]
            case _:
                return
        (start, end), behind = self.span(node), self.span(node.func)[1]
        blank = _BLANK.match(self.text, behind)
        opening = (blank.end() if blank else behind) + 1
        if self.text[opening - 1 : opening] != "(":
            return
        values: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        values.sort(key=lambda a: (a.lineno, a.col_offset))
        items = [ListItem(*self.span(value), _keyword(value), _is_plain(value)) for value in values]
        if any(item.start < opening for item in items):  # a lone generator expression
            return
        parent = place.parent
        awaited = self.span(parent)[0] if isinstance(parent, ast.Await) else -1
        is_base = (isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is node) or (
            isinstance(parent, ast.Call) and parent.func is node
        )
        is_statement = isinstance(parent, ast.Expr | ast.Raise)
        call = Call(name, receiver, start, end, tuple(items), opening, awaited, is_statement, is_base)
        self.facts.calls.append(call)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        span = self.span(node)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return
        spans = [self.span(alias) for alias in node.names]
        for index, alias in enumerate(node.names):
            alone = len(spans) == 1
            removal = without_lines(self.text, span) if alone else without_item(self.text, spans, index)
            name = alias.asname or alias.name.split(".")[0]
            if removal and name != "*":
                self.facts.imports.append(Import(name, removal, span[1]))

    def _statements(self, body: list[ast.stmt]) -> None:
        if len(body) < 2:
            return
        for statement in body:
            if isinstance(statement, _SIMPLE) and not (
                isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            ):
                removal = without_lines(self.text, self.span(statement))
                if removal:
                    self.facts.statements.append(removal)

    def _chain(self, node: ast.Attribute, place: _Place) -> None:
        assert place.function is not None
        assert place.top is not None
        start, end = self.span(node)
        text = self.text[start:end]
        known = self._locals[self._key(place.function)]
        if not isinstance(node.ctx, ast.Load):
            known.stored.add(text)
        elif not (isinstance(place.parent, ast.Call) and place.parent.func is node) and _is_chain(node):
            line = line_start(self.text, self.span(place.top)[0])
            self.facts.chains.append(Chain(text, start, end, self._key(place.function), line))

    def _arguments(self) -> dict[tuple[str, str], list[Site]]:
        """The removals of keyword arguments in calls of the text's own classes."""
        found: dict[tuple[str, str], list[Site]] = {}
        for call in self.facts.calls:
            spans = [item.span for item in call.arguments]
            for index, item in enumerate(call.arguments if call.name in self._classes else ()):
                removal = without_item(self.text, spans, index) if item.name else None
                if removal:
                    found.setdefault((call.name, item.name), []).append(removal)
        return found


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _keyword(node: ast.expr | ast.keyword) -> str:
    return (node.arg or "") if isinstance(node, ast.keyword) else ""


def _is_plain(node: ast.expr | ast.keyword) -> bool:
    return not isinstance(node, ast.keyword | ast.Starred)


def _is_chain(node: ast.expr) -> bool:
    """Whether the node is a name with attributes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
