"""An edit that the user did not want, or has made, is not offered again at its place."""

from mercury_lsp.completion.next_edits.proposals import Ledger
from mercury_lsp.documents.document import Edit

A, B = "file:///a.py", "file:///b.py"
SITE, OTHER = Edit(50, "old", "newer"), Edit(90, "old", "newer")


def offered(*sites: Edit) -> Ledger:
    ledger = Ledger()
    ledger.offer("1", A, sites)
    return ledger


def test_a_dismissed_edit_is_declined_at_its_place_and_in_its_document_only():
    ledger = offered(SITE)
    ledger.dismiss("1")
    assert ledger.is_declined(A, SITE)
    assert not ledger.is_declined(A, OTHER)
    assert not ledger.is_declined(B, SITE)


def test_an_edit_that_was_made_and_taken_back_is_declined_where_it_stands_now():
    ledger = offered(SITE)
    ledger.edited(A, [Edit(50, "old", "newer"), Edit(50, "newer", "old"), Edit(10, "", "four")])
    assert ledger.is_declined(A, Edit(54, "old", "newer"))
    assert not ledger.is_declined(A, OTHER)


def test_an_earlier_offer_that_was_neither_made_nor_dismissed_may_be_made_again():
    ledger = offered(SITE)
    ledger.offer("2", A, [OTHER])
    ledger.dismiss("1")
    assert not ledger.is_declined(A, SITE)


def test_an_edit_that_was_offered_twice_is_dismissed_by_either_id():
    ledger = offered(SITE)
    ledger.offer("2", A, [SITE])
    ledger.dismiss("1")
    assert ledger.is_declined(A, SITE)


def test_an_offer_moves_along_with_edits_above_it():
    ledger = offered(SITE)
    ledger.edited(A, [Edit(10, "", "four")])
    ledger.dismiss("1")
    assert ledger.is_declined(A, Edit(54, "old", "newer"))
