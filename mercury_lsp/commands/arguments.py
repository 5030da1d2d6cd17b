"""Arguments that are numbers."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def number(kind: Callable[[str], Number], lowest: int, highest: int) -> Callable[[str], Number]:
    """A parser of numbers in a range, both ends included."""

    def parsed(text: str) -> Number:
        try:
            if lowest <= (value := kind(text)) <= highest:
                return value
        except ValueError:
            pass
        raise ArgumentTypeError(f"{text!r} is not a number from {lowest} to {highest}")

    return parsed
