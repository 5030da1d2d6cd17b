"""A store of bounded size that drops what was unused for longest."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LeastRecentlyUsed(Generic[K, V]):
    """A mapping that drops its least recently used entries when their sizes add up to more than the limit.

    Without `size` each entry counts as 1. The newest entry always stays. Iteration begins with the entry that was
    unused for longest, and uses none.
    """

    def __init__(self, limit: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self.limit = limit
        self.total = 0
        """Sum of the sizes."""
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[V]:
        """The values in the order of iteration."""
        return list(self._entries.values())

    def get(self, key: K) -> V | None:
        """The entry, which thereby counts as used; None if there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The entry, which thereby counts as used; made and put in if there is none."""
        if key not in self._entries:
            return self.put(key, make())
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: K, value: V) -> V:
        """Put an entry in as the newest, drop what exceeds the limit, and return the value."""
        self.pop(key)
        self._entries[key] = value
        self.total += self._size(value)
        while self.total > self.limit and len(self._entries) > 1:
            self.pop(next(iter(self._entries)))
        return value

    def pop(self, key: K) -> V | None:
        """Take an entry out; None if there is none."""
        if key not in self._entries:
            return None
        value = self._entries.pop(key)
        self.total -= self._size(value)
        return value

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self.total = 0
