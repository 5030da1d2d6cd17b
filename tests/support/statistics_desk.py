"""A user at a desk: a document that changes, suggestions on display, and the resulting records."""

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit
from mercury_lsp.statistics.observer import Observer
from mercury_lsp.statistics.store import OutcomeRecord

URI = "file:///sample.py"
TEXT = "value(1)"


class Desk:
    """A document, its user and the observer."""

    def __init__(self, text: str = "x = "):
        self.text = text
        self.records: list[OutcomeRecord] = []
        self.observer = Observer(self.records.append)
        self.observer.switch(True)
        self._ids = 0

    def suggestion(self, text: str, name: str | None = None) -> Suggestion:
        self._ids += 1
        return Suggestion(name or f"s{self._ids}", text, (0, 0), (0, 0), 0.8, 3, 5.0)

    def show(self, *texts: str, at: int | None = None, name: str | None = None, automatic: bool = True) -> None:
        """Request suggestions and answer with these texts, at the end of the document by default."""
        request = self.observer.requested(URI, len(self.text) if at is None else at, "python", automatic)
        self.observer.answered(request, [self.suggestion(text, name) for text in texts])

    def edit(self, start: int, removed: int, inserted: str) -> Edit:
        """Change the text without a notification."""
        edit = Edit(start, self.text[start : start + removed], inserted)
        self.text = self.text[:start] + inserted + self.text[start + removed :]
        return edit

    def change(self, start: int, removed: int, inserted: str) -> None:
        """Change the text, with its own notification."""
        self.observer.edited(URI, [self.edit(start, removed, inserted)])

    def insert(self, text: str, at: int | None = None) -> None:
        self.change(len(self.text) if at is None else at, 0, text)

    def type(self, text: str) -> None:
        for key in text:
            self.insert(key)

    def close(self) -> OutcomeRecord:
        """Close the document; returns its only record."""
        self.observer.close()
        [record] = self.records
        return record


def result(record: OutcomeRecord) -> tuple[str, int]:
    return record.outcome, record.saved
