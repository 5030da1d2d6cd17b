"""Loans of books: who has what, until when, and what being late costs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from library.shelves import Book, Catalogue, CatalogueError

logger = logging.getLogger(__name__)

LOAN_DAYS = 28
MAX_RENEWALS = 2
FEE_PER_DAY = 20  # cents
MAX_FEE = 1_000


class LoanRefused(CatalogueError):
    """The reader may not borrow or renew this book."""


@dataclass(frozen=True)
class Reader:
    name: str
    address: str
    is_student: bool = False

    @property
    def max_loans(self) -> int:
        return 20 if self.is_student else 10


@dataclass(frozen=True)
class Loan:
    """A book that a reader has at home."""

    book: Book
    reader: Reader
    due: date
    renewals: int = 0

    def days_late(self, today: date) -> int:
        return max(0, (today - self.due).days)

    def fee(self, today: date) -> int:
        """Cents for the days after the loan was due."""
        fee = self.days_late(today) * FEE_PER_DAY
        if self.reader.is_student:
            fee //= 2
        return min(fee, MAX_FEE)

    def renewed(self, today: date) -> Loan:
        """The loan for another four weeks; raises LoanRefused after too many."""
        if self.renewals >= MAX_RENEWALS:
            raise LoanRefused(f"{self.book.title} was renewed {MAX_RENEWALS} times already")
        if self.days_late(today):
            raise LoanRefused(f"{self.book.title} is late; bring it back first")
        return replace(self, due=today + timedelta(days=LOAN_DAYS), renewals=self.renewals + 1)


class Desk:
    """Where books are borrowed and returned."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._loans: dict[str, Loan] = {}

    def loans_of(self, reader: Reader) -> list[Loan]:
        return [loan for loan in self._loans.values() if loan.reader == reader]

    def borrow(self, number: str, reader: Reader, today: date) -> Loan:
        """Lend a book to a reader.

        Raises UnknownBook if there is no such book, and LoanRefused if it is lent already or the reader has too many.
        """
        book = self.catalogue.get(number)
        if number in self._loans:
            raise LoanRefused(f"{book.title} is lent until {self._loans[number].due:%d %B}")
        if len(self.loans_of(reader)) >= reader.max_loans:
            raise LoanRefused(f"{reader.name} has {reader.max_loans} books already")
        loan = Loan(book, reader, today + timedelta(days=LOAN_DAYS))
        self._loans[number] = loan
        logger.info("lent %s to %s", number, reader.name)
        return loan

    def renew(self, number: str, today: date) -> Loan:
        loan = self._loans[number] = self._loan(number).renewed(today)
        logger.info("renewed %s until %s", number, loan.due)
        return loan

    def give_back(self, number: str, today: date) -> int:
        """Take a book back; returns the fee in cents."""
        loan = self._loan(number)
        del self._loans[number]
        fee = loan.fee(today)
        if fee:
            logger.warning("%s owes %.2f for %s", loan.reader.name, fee / 100, number)
        return fee

    def late(self, today: date) -> Iterator[Loan]:
        """The loans that are late, the latest first."""
        late = [loan for loan in self._loans.values() if loan.days_late(today)]
        yield from sorted(late, key=lambda loan: loan.due)

    def reminders(self, today: date) -> dict[str, str]:
        """A letter for each reader with late books, by address."""
        letters: dict[str, str] = {}
        for loan in self.late(today):
            reader, days = loan.reader, loan.days_late(today)
            text = letters.get(reader.address, f"Dear {reader.name},\n\nplease bring back:\n")
            letters[reader.address] = f"{text}- {loan.book.label}, {days} days late\n"
        return letters

    def _loan(self, number: str) -> Loan:
        if number not in self._loans:
            raise CatalogueError(f"the book {number!r} is not lent")
        return self._loans[number]
