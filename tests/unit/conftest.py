"""For tests of documents and of what is made of their trees."""

import pytest

try:
    from mercury_lsp import documents
except ImportError:  # the trainer's tests also run on GPU machines without anything of LSP
    documents = None


@pytest.fixture(autouse=True, scope="session")
def parses_are_not_cut_short():
    """A busy machine parses as much as a quiet one; the tests of running out of time set a limit of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("KEYSTROKE_SECONDS", "PAUSE_SECONDS", "WHOLE_SECONDS") if documents else ():
            patch.setattr(documents, limit, 60.0)
        yield
