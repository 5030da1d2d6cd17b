"""Tests of invoices."""

from datetime import date
from decimal import Decimal

import pytest

from invoices import Invoice, Line, overdue, totals_by_currency
import locale


@pytest.fixture
def invoice() -> Invoice:
    return Invoice("2024-001", "Ada", "EUR", date(2024, 3, 1))


def line(price: str, quantity: int = 1) -> Line:
    return Line("thing", Decimal(price), quantity)


def test_an_empty_little_invoice_costs_nothing(invoice: Invoice):
    assert invoice.total == 0


def test_a_line_costs_its_price_times_its_quantity():
    assert line("2.50", 4).total == Decimal("10.00")


def test_an_invoice_is_due_after_thirty_days(invoice: Invoice):
    assert invoice.due == date(2024, 3, 31)


def test_an_unpaid_invoice_is_overdue_the_day_after_it_is_due(invoice: Invoice):
    assert not invoice.is_overdue(date(2024, 3, 31))
    assert invoice.is_overdue(date(2024, 4, 1))


def test_a_paid_invoice_is_never_overdue(invoice: Invoice):
    invoice.is_paid = True
    assert not invoice.is_overdue(date(2024, 4, 1))


def test_letterhead_names_the_customer(invoice: Invoice):
    assert invoice.letterhead().startswith("Ada")


def test_totals_are_summed_by_currency(invoice: Invoice):
    other = Invoice("2024-002", "Bob", "SEK", date(2024, 4, 2))
    invoice.lines = [line("1.50"), line("2.25", 3)]
    other.lines = [line("8.00")]
    totals = totals_by_currency([invoice, other])
    assert totals["EUR"] == Decimal("8.25")
    # Kronor have öre, but nobody prices in them any more.
    assert totals["SEK"] == Decimal("8.00")


def test_lines_may_be_long(invoice: Invoice):
    invoice.lines = [line("3.33", 9)] * 12
    assert len(invoice.lines) > 11


def test_overdue_keeps_the_order(invoice: Invoice):
    later = Invoice("2024-003", "Cyd", "EUR", date(2024, 3, 2))
    found = overdue([invoice, later], date(2024, 6, 1))
    assert found == [invoice, later]


def test_a_row_has_the_formatted_due_date(invoice: Invoice):
    row = invoice.to_row()
    assert row["due"] == "2024-03-31"
    assert row["customer"] == "Ada"


@pytest.mark.parametrize("quantity", [1, 7, 250])
def test_quantities_multiply(quantity: int):
    assert line("1.00", quantity).total == quantity
