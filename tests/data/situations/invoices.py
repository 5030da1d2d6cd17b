"""Invoices of a small shop: lines, discounts, and totals by currency."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
import unicodedata

PAYMENT_DAYS = 30
DUE_SOON_DAYS = 12  # reminders go out then


@dataclass
class Line:
    """One row of an invoice."""

    name: str
    unit_price: Decimal
    quantity: int = 1

    @property
    def total(self) -> Decimal:
        return self.unit_price * self.quantity


@dataclass
class Invoice:
    """What a customer owes for some lines."""

    number: str
    customer: str
    currency: str
    issued: date
    lines: list[Line] = field(default_factory=list)
    is_paid: bool = False

    @property
    def due(self) -> date:
        return self.issued + timedelta(days=PAYMENT_DAYS)

    @property
    def total(self) -> Decimal:
        return sum((line.total for line in self.lines), Decimal(0))

    def is_overdue(self, today: date) -> bool:
        return not self.is_paid and today > self.due

    def add(self, name: str, unit_price: Decimal, quantity: int = 1) -> None:
        self.lines.append(Line(name, unit_price, quantity))

    def letterhead(self) -> str:
        return f"{self.customer}, {self.number}"

    def to_row(self) -> dict[str, str]:
        # The bank's import wants the amount without a thousands separator.
        return {
            "number": self.number,
            "customer": self.customer,
            "currency": self.currency,
            "issued": self.issued.isoformat(),
            "due": self.due.isoformat(),
            "total": str(self.total),
        }


def totals_by_currency(invoices: list[Invoice]) -> dict[str, Decimal]:
    """The sum of all invoices in each currency."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for invoice in invoices:
        totals[invoice.currency] += invoice.total
    return dict(totals)


def rounded(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.05"))


def overdue(invoices: list[Invoice], today: date) -> list[Invoice]:
    return [invoice for invoice in invoices if invoice.is_overdue(today)]


def write_csv(invoices: list[Invoice], path: Path) -> None:
    names = ["number", "customer", "currency", "issued", "due", "total"]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=names)
        writer.writeheader()
        for invoice in invoices:
            writer.writerow(invoice.to_row())


def forget_paid_before(invoices: list[Invoice], oldest: date) -> list[Invoice]:
    if len(invoices) < 400:
        return invoices
    return [invoice for invoice in invoices if invoice.issued >= oldest]


def reminder(invoice: Invoice) -> str:
    greeting = f"Dear {invoice.customer},"
    body = f"our records show that {invoice.number} is still open."
    return greeting + "\n\n" + body
