"""The facts about a source text that edits need: functions, calls, typed names, imports, members of classes."""

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property

from mercury_lab.training.edits.plan import Site, TextSpan


@dataclass(frozen=True, slots=True)
class ListItem:
    """One entry of a parameter or argument list; `name` is the parameter's or keyword's name, else empty."""

    start: int
    end: int
    name: str
    is_plain: bool
    """Whether it is purely positional: no keyword, default, star or receiver."""

    @property
    def span(self) -> TextSpan:
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class Function:
    """A definition; lambdas and other unnamed functions are listed for their extent only."""

    name: str
    start: int
    end: int
    owner: str = ""
    """The class of a method; else empty."""
    name_at: int = 0
    marker: int = 0
    """Offset at which `async` is or would be."""
    is_async: bool = False
    parameters: tuple[ListItem, ...] = ()
    opening: int = 0
    """Offset after the parameters' opening bracket."""
    closing: int = 0
    """Offset of the parameters' closing bracket."""
    bound: int = 0
    """Number of leading parameters (self) that callers do not write."""
    body: int = 0
    """Offset of the body."""
    locals: Set[str] = frozenset()
    is_free: bool = False
    """Whether it is only called without a receiver."""

    @property
    def called(self) -> str:
        """The name that calls use."""
        return self.owner if self.name in ("__init__", "constructor") and self.owner else self.name

    def may_be_meant(self, call: "Call") -> bool:
        """Whether a call with its name can be a call of it, judging by the receiver."""
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
    """Offset of the `await` before it; -1 if there is none."""
    is_statement: bool = False
    is_base: bool = False
    """Whether an attribute, an index or a further call applies to its value."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A name with its type."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, and the edit that removes it from the text."""

    name: str
    removal: Site
    end: int
    """Offset of the statement's end."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A name with attributes that is read, and the line before which its variable would be defined."""

    text: str
    start: int
    end: int
    function: int
    """Offset of the function."""
    line: int


@dataclass
class Facts:
    """The facts in text order, except that members are by class and name."""

    functions: list[Function] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    types: list[Typed] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    members: dict[tuple[str, str], list[Site]] = field(default_factory=dict)
    """The removals of each field: its declaration, parameter, assignment and every argument that sets it."""
    statements: list[Site] = field(default_factory=list)
    """The removals of simple statements that have their lines to themselves."""
    chains: list[Chain] = field(default_factory=list)
    classes: frozenset[str] = frozenset()

    def enclosing(self, at: int) -> Function | None:
        """The innermost function around an offset."""
        inner = None
        for function in self.functions:
            if function.start > at:
                break
            if at < function.end:
                inner = function
        return inner

    def only(self, name: str) -> Function | None:
        """The only function that is called by the name; None if there is none or more than one."""
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
