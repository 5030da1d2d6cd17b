"""Arithmetic expressions: from text over tokens and a tree to a number."""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Union

TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<mark>\*\*|//|[-+*/%(),=])
    """,
    re.VERBOSE,
)


class Kind(Enum):
    NUMBER = "number"
    NAME = "name"
    MARK = "mark"
    END = "end"


class ParseError(ValueError):
    """The text is no expression; `offset` says where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at offset {offset}")
        self.offset = offset


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    offset: int

    def is_mark(self, *marks: str) -> bool:
        return self.kind is Kind.MARK and self.text in marks


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Name:
    name: str
    offset: int


@dataclass(frozen=True)
class Unary:
    mark: str
    operand: "Node"


@dataclass(frozen=True)
class Binary:
    mark: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple["Node", ...]
    offset: int


@dataclass(frozen=True)
class Assignment:
    name: str
    value: "Node"


Node = Union[Number, Name, Unary, Binary, Call, Assignment]

BINARY: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}

FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "log": math.log,
    "min": min,
    "max": max,
    "abs": abs,
}

CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text without blanks, and one for its end."""
    offset = 0
    while offset < len(text):
        match = TOKEN.match(text, offset)
        if match is None:
            raise ParseError(f"unexpected character {text[offset]!r}", offset)
        if match.lastgroup != "blank":
            yield Token(Kind(match.lastgroup), match.group(), offset)
        offset = match.end()
    yield Token(Kind.END, "", len(text))


class Parser:
    """Reads one expression by precedence climbing."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._position = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _advance(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _expect(self, mark: str) -> Token:
        if not self._next.is_mark(mark):
            raise ParseError(f"expected {mark!r}, found {self._next.text!r}", self._next.offset)
        return self._advance()

    def parse(self) -> Node:
        """The tree of the whole text."""
        node = self._assignment()
        if self._next.kind is not Kind.END:
            raise ParseError(f"unexpected {self._next.text!r}", self._next.offset)
        return node

    def _assignment(self) -> Node:
        node = self._binary(1)
        if isinstance(node, Name) and self._next.is_mark("="):
            self._advance()
            return Assignment(node.name, self._assignment())
        return node

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while (precedence := PRECEDENCE.get(self._next.text, 0)) >= least:
            mark = self._advance().text
            right = self._binary(precedence + 1)
            left = Binary(mark, left, right)
        return left

    def _unary(self) -> Node:
        if self._next.is_mark("-", "+"):
            mark = self._advance().text
            return Unary(mark, self._unary())
        return self._power()

    def _power(self) -> Node:
        base = self._atom()
        if self._next.is_mark("**"):
            self._advance()
            return Binary("**", base, self._unary())
        return base

    def _atom(self) -> Node:
        token = self._advance()
        if token.kind is Kind.NUMBER:
            return Number(float(token.text))
        if token.kind is Kind.NAME:
            if self._next.is_mark("("):
                return Call(token.text, self._arguments(), token.offset)
            return Name(token.text, token.offset)
        if token.is_mark("("):
            node = self._binary(1)
            self._expect(")")
            return node
        raise ParseError("expected a number, a name or a bracket", token.offset)

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        arguments: list[Node] = []
        while not self._next.is_mark(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._binary(1))
        self._expect(")")
        return tuple(arguments)


class Calculator:
    """Evaluates expressions and remembers the values of names."""

    def __init__(self) -> None:
        self.variables: dict[str, float] = dict(CONSTANTS)

    def evaluate(self, text: str) -> float:
        """The value of an expression; raises ParseError, and ZeroDivisionError as Python does."""
        return self._value(Parser(text).parse())

    def _value(self, node: Node) -> float:
        match node:
            case Number(value):
                return value
            case Name(name, offset):
                if name not in self.variables:
                    raise ParseError(f"unknown name {name!r}", offset)
                return self.variables[name]
            case Unary(mark, operand):
                value = self._value(operand)
                return -value if mark == "-" else value
            case Binary(mark, left, right):
                return BINARY[mark](self._value(left), self._value(right))
            case Call(name, arguments, offset):
                if name not in FUNCTIONS:
                    raise ParseError(f"unknown function {name!r}", offset)
                return FUNCTIONS[name](*(self._value(each) for each in arguments))
            case Assignment(name, value):
                self.variables[name] = self._value(value)
                return self.variables[name]
        raise TypeError(f"no node: {node!r}")
