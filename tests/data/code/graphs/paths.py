"""Directed graphs with weights: searching, shortest paths and order."""

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


class NoPath(Exception):
    """No path leads from one node to the other."""


class HasCycle(Exception):
    """The nodes cannot be ordered."""


class Graph(Generic[N]):
    """A directed graph as a dictionary of dictionaries.

    Examples
    --------
    >>> graph = Graph()
    >>> graph.add_edge("a", "b", 2.0)
    >>> graph.add_edge("b", "c", 1.0)
    >>> graph.shortest_path("a", "c")
    (['a', 'b', 'c'], 3.0)
    """

    def __init__(self, edges: Iterable[tuple[N, N, float]] = ()) -> None:
        self._edges: dict[N, dict[N, float]] = {}
        for start, end, weight in edges:
            self.add_edge(start, end, weight)

    def __contains__(self, node: N) -> bool:
        return node in self._edges

    def __len__(self) -> int:
        return len(self._edges)

    def add_node(self, node: N) -> None:
        self._edges.setdefault(node, {})

    def add_edge(self, start: N, end: N, weight: float = 1.0) -> None:
        """Add an edge and its nodes; an edge that exists gets the new weight."""
        if weight < 0:
            raise ValueError(f"the weight {weight} is negative")
        self.add_node(start)
        self.add_node(end)
        self._edges[start][end] = weight

    def neighbours(self, node: N) -> Iterator[N]:
        return iter(self._edges[node])

    def edges(self) -> Iterator[tuple[N, N, float]]:
        for start, ends in self._edges.items():
            for end, weight in ends.items():
                yield start, end, weight

    def reversed(self) -> "Graph[N]":
        """The graph with every edge turned round."""
        result: Graph[N] = Graph()
        for node in self._edges:
            result.add_node(node)
        for start, end, weight in self.edges():
            result.add_edge(end, start, weight)
        return result

    def breadth_first(self, start: N) -> Iterator[N]:
        """The nodes that can be reached, the nearest first."""
        seen = {start}
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            yield node
            for other in self.neighbours(node):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)

    def shortest_path(self, start: N, goal: N) -> tuple[list[N], float]:
        """The nodes of the shortest path and its length, by Dijkstra's algorithm.

        Raises
        ------
        NoPath
            If `goal` cannot be reached.
        """
        distance = {start: 0.0}
        before: dict[N, N] = {}
        done: set[N] = set()
        heap: list[tuple[float, int, N]] = [(0.0, 0, start)]
        count = 0
        while heap:
            length, _, node = heapq.heappop(heap)
            if node == goal:
                return self._path(before, goal), length
            if node in done:
                continue
            done.add(node)
            for other, weight in self._edges[node].items():
                longer = length + weight
                if longer < distance.get(other, float("inf")):
                    distance[other] = longer
                    before[other] = node
                    count += 1
                    heapq.heappush(heap, (longer, count, other))
        raise NoPath(f"no path leads from {start!r} to {goal!r}")

    @staticmethod
    def _path(before: dict[N, N], goal: N) -> list[N]:
        path = [goal]
        while path[-1] in before:
            path.append(before[path[-1]])
        return path[::-1]

    def topological_order(self) -> list[N]:
        """The nodes in an order in which every edge leads forwards."""
        incoming = dict.fromkeys(self._edges, 0)
        for _, end, _ in self.edges():
            incoming[end] += 1
        ready = [node for node, count in incoming.items() if count == 0]
        order: list[N] = []
        while ready:
            node = ready.pop()
            order.append(node)
            for other in self.neighbours(node):
                incoming[other] -= 1
                if incoming[other] == 0:
                    ready.append(other)
        if len(order) < len(self):
            raise HasCycle(f"{len(self) - len(order)} nodes lie on a cycle or behind one")
        return order
