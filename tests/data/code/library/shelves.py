"""A library's catalogue: books on shelves, and how they are found again."""

from __future__ import annotations

import json
import typing as t
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULT_SHELF = "unsorted"


class CatalogueError(Exception):
    """Something is wrong with the catalogue or with a request to it."""


class UnknownBook(CatalogueError):
    """No book has this number."""

    def __init__(self, number: str) -> None:
        super().__init__(f"no book has the number {number!r}")
        self.number = number


@dataclass(frozen=True)
class Book:
    """A book, identified by its number.

    :param number: the ISBN, digits only.
    :param title: the title as printed.
    :param authors: the names of the authors, in order.
    :param year: the year of publication, if it is known.
    """

    number: str
    title: str
    authors: tuple[str, ...]
    year: int | None = None

    @property
    def label(self) -> str:
        """What is printed on the spine."""
        first = self.authors[0] if self.authors else "anonymous"
        if len(self.authors) > 1:
            first = f"{first} et al."
        if self.year is None:
            return f"{first}: {self.title}"
        return f"{first}: {self.title} ({self.year})"

    def matches(self, words: Iterable[str]) -> bool:
        """Whether all words stand in the title or in the name of an author."""
        text = " ".join((self.title, *self.authors)).lower()
        return all(word.lower() in text for word in words)

    def to_json(self) -> dict[str, t.Any]:
        """The book as a dictionary that :func:`json.dumps` accepts."""
        return {
            "number": self.number,
            "title": self.title,
            "authors": list(self.authors),
            "year": self.year,
        }

    @classmethod
    def from_json(cls, data: dict[str, t.Any]) -> Book:
        """The book that :meth:`to_json` wrote."""
        try:
            return cls(
                number=data["number"],
                title=data["title"],
                authors=tuple(data["authors"]),
                year=data.get("year"),
            )
        except KeyError as error:
            raise CatalogueError(f"a book lacks {error.args[0]!r}") from error


@dataclass
class Shelf:
    """A shelf holds books up to its capacity, sorted by label."""

    name: str
    capacity: int = 100
    books: list[Book] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.books)

    def __iter__(self) -> Iterator[Book]:
        return iter(self.books)

    def __contains__(self, book: object) -> bool:
        return book in self.books

    @property
    def is_full(self) -> bool:
        return len(self.books) >= self.capacity

    def add(self, book: Book) -> None:
        """Put a book on the shelf.

        :raises CatalogueError: if the shelf is full.
        """
        if self.is_full:
            raise CatalogueError(f"the shelf {self.name!r} is full")
        self.books.append(book)
        self.books.sort(key=lambda each: each.label)

    def remove(self, book: Book) -> None:
        """Take a book from the shelf."""
        if book not in self.books:
            raise UnknownBook(book.number)
        self.books.remove(book)


class Catalogue:
    """All shelves, with an index of the books by number and by author.

    .. code-block:: python

        catalogue = Catalogue()
        catalogue.add(Book("9780131103627", "The C Programming Language", ("Kernighan", "Ritchie"), 1988))
        for book in catalogue.find("programming"):
            print(book.label)
    """

    def __init__(self) -> None:
        self.shelves: dict[str, Shelf] = {DEFAULT_SHELF: Shelf(DEFAULT_SHELF)}
        self._by_number: dict[str, tuple[Book, Shelf]] = {}
        self._by_author: defaultdict[str, list[Book]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._by_number)

    def shelf(self, name: str, capacity: int = 100) -> Shelf:
        """The shelf of this name, which is set up if there is none."""
        if name not in self.shelves:
            self.shelves[name] = Shelf(name, capacity)
        return self.shelves[name]

    def add(self, book: Book, shelf_name: str = DEFAULT_SHELF) -> Shelf:
        """Put a book on a shelf and into the index; returns the shelf."""
        if book.number in self._by_number:
            raise CatalogueError(f"the number {book.number!r} is taken")
        shelf = self.shelf(shelf_name)
        shelf.add(book)
        self._by_number[book.number] = book, shelf
        for author in book.authors:
            self._by_author[author].append(book)
        return shelf

    def remove(self, number: str) -> Book:
        """Take a book out of the catalogue; returns the book."""
        book, shelf = self._entry(number)
        shelf.remove(book)
        del self._by_number[number]
        for author in book.authors:
            self._by_author[author].remove(book)
        return book

    def move(self, number: str, shelf_name: str) -> None:
        """Put a book on another shelf."""
        book, shelf = self._entry(number)
        if shelf.name == shelf_name:
            return
        other = self.shelf(shelf_name)
        other.add(book)
        shelf.remove(book)
        self._by_number[number] = book, other

    def get(self, number: str) -> Book:
        """The book with this number."""
        return self._entry(number)[0]

    def find(self, *words: str) -> list[Book]:
        """The books whose title or authors have all of these words, sorted by label."""
        found = [book for book, _ in self._by_number.values() if book.matches(words)]
        return sorted(found, key=lambda each: each.label)

    def by_author(self, author: str) -> list[Book]:
        """The books of an author, the oldest first; those without a year come last."""
        return sorted(self._by_author[author], key=lambda each: (each.year is None, each.year))

    def save(self, path: Path) -> None:
        """Write all books to a file, shelf by shelf."""
        data = {name: [book.to_json() for book in shelf] for name, shelf in self.shelves.items()}
        path.write_text(json.dumps(data, indent=2), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Catalogue:
        """Read what :meth:`save` wrote."""
        catalogue = cls()
        data = json.loads(path.read_text(encoding="utf-8"))
        for name, books in data.items():
            for book in books:
                catalogue.add(Book.from_json(book), name)
        return catalogue

    def _entry(self, number: str) -> tuple[Book, Shelf]:
        try:
            return self._by_number[number]
        except KeyError:
            raise UnknownBook(number) from None
