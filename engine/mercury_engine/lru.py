"""Least recently used entries of a store are dropped; the last of an `OrderedDict` was used last."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def fresh(store: OrderedDict[K, V], key: K) -> V | None:
    """The entry, marked as used just now."""
    if key not in store:
        return None
    store.move_to_end(key)
    return store[key]


def keep(store: OrderedDict[K, V], key: K, value: V, most: int) -> V:
    """Put the entry in, and keep so many."""
    store[key] = value
    while len(store) > most:
        store.popitem(last=False)
    return value
