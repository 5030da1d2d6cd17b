"""What edits need to know of a source text: functions, calls, typed names, imports, members of classes."""

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property

from mercury_engine.training.edits.plan import Site, TextSpan


@dataclass(frozen=True, slots=True)
class ListItem:
    """One entry of a parameter or argument list; `name` is the parameter's or the keyword's, else empty."""

    start: int
    end: int
    name: str
    is_plain: bool
    """Whether only its place tells what it is: no keyword, default, star or receiver."""

    @property
    def span(self) -> TextSpan:
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class Function:
    """A definition; lambdas and other functions without a name are there for their extent."""

    name: str
    start: int
    end: int
    owner: str = ""
    """The class, for methods."""
    name_at: int = 0
    marker: int = 0
    """Where `async` stands or may be put."""
    is_async: bool = False
    parameters: tuple[ListItem, ...] = ()
    opening: int = 0
    """Behind the bracket that opens the parameters."""
    closing: int = 0
    """Before the bracket that closes them."""
    bound: int = 0
    """How many leading parameters (self) callers do not write."""
    body: int = 0
    """Where the body starts."""
    locals: Set[str] = frozenset()
    is_free: bool = False
    """Whether it is always called without a receiver."""

    @property
    def called(self) -> str:
        """The name by which it is called."""
        return self.owner if self.name in ("__init__", "constructor") and self.owner else self.name

    def may_be_meant(self, call: "Call") -> bool:
        """Whether a call by its name is one of it, as far as the receiver tells."""
        if self.is_free:
            return not call.receiver
        return bool(call.receiver) or not self.bound or self.called != self.name


@dataclass(frozen=True, slots=True)
class Call:
    """A call; `receiver` is the text before the last dot."""

    name: str
    receiver: str
    start: int
    end: int
    arguments: tuple[ListItem, ...]
    opening: int
    awaited_at: int = -1
    """Where the `await` before it starts; -1 without."""
    is_statement: bool = False
    is_base: bool = False
    """Whether an attribute or an index is taken of it, or it is called again."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A name with its type."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, and how to take it out of the text."""

    name: str
    removal: Site
    end: int
    """Where the statement ends."""


@dataclass(frozen=True, slots=True)
class Chain:
    """An attribute of an attribute that is read, and the line that a variable for it would stand before."""

    text: str
    start: int
    end: int
    function: int
    """Start of the function."""
    line: int


@dataclass
class Facts:
    """Everything in the order of the text, except that members come by class and name."""

    functions: list[Function] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    types: list[Typed] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    members: dict[tuple[str, str], list[Site]] = field(default_factory=dict)
    """How to take a field out: its declaration, parameter, assignment and every argument that sets it."""
    statements: list[Site] = field(default_factory=list)
    """Simple statements on lines of their own, and how to take them out."""
    chains: list[Chain] = field(default_factory=list)
    classes: frozenset[str] = frozenset()

    def enclosing(self, at: int) -> Function | None:
        """The innermost function around a place."""
        inner = None
        for function in self.functions:
            if function.start > at:
                break
            if at < function.end:
                inner = function
        return inner

    def only(self, name: str) -> Function | None:
        """The one function that is called by the name; None when there is none or another one."""
        found = self._functions.get(name, ())
        return found[0] if len(found) == 1 else None

    def calls_of(self, name: str) -> list[Call]:
        """All calls by the name."""
        return self._calls.get(name, [])

    @cached_property
    def _functions(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for function in self.functions:
            found.setdefault(function.called, []).append(function)
        return found

    @cached_property
    def _calls(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.name, []).append(call)
        return found
