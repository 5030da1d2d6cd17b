"""What is kept of suggestions, figures and no text, in one file per month; several processes may append at once.

Summaries of the records, in total, by language or by day, are for `mercury-lsp stats`.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import date
from pathlib import Path
from time import mktime, strftime, strptime, time
from typing import Literal, get_args

from mercury_lsp import private_files
from mercury_lsp.errors import StatisticsError

RETENTION_DAYS = 400
"""Age, in days, after which rows are deleted."""

_MONTH = "%Y-%m"
_NAME = re.compile(r"\d{4}-\d\d\.jsonl")

Outcome = Literal["accepted", "partly", "typed", "rejected", "ignored", "asked"]
"""accepted: the whole text, or all of its rest, was inserted at once.
partly: the start of it was inserted at once.
typed: the user typed the same text key by key; nothing was saved.
rejected: the user typed something else there, moved away or dismissed it.
ignored: none of these; the document was closed, or another suggestion replaced it.
asked: not a suggestion, but a request sent to an edit server."""


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """One suggestion that was shown, or one request for edits; lengths in code points, a line break counts as one."""

    shown_at: int
    """Seconds since the epoch."""
    language: str
    client: str
    model: str
    automatic: bool
    """The editor asked on its own, not the user."""
    confidence: float
    latency_ms: float
    """Time from the request until the suggestion was sent to the client."""
    length: int
    outcome: Outcome
    saved: int
    """Characters inserted at once."""


def default_path() -> Path:
    """The folder of the statistics, below $XDG_STATE_HOME or the platform's equivalent."""
    return private_files.state_folder() / "statistics"


def add(folder: Path, records: Sequence[OutcomeRecord]) -> None:
    """Append rows to this month's file, created if missing, and delete files with old rows. Raises OSError."""
    private_files.make_folder(folder.parent)
    private_files.make_folder(folder)
    lines = "".join(json.dumps(astuple(record)) + "\n" for record in records)
    path = folder / f"{strftime(_MONTH)}.jsonl"
    descriptor = private_files.opened(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, lines.encode())  # in one call, so that lines of other processes do not interleave
    finally:
        os.close(descriptor)
    for each in files(folder):
        if mktime(strptime(each.stem, _MONTH)) < time() - RETENTION_DAYS * 86_400:
            each.unlink(missing_ok=True)


def read(folder: Path, since: float) -> list[OutcomeRecord]:
    """The rows since a time, oldest first, without damaged lines. Raises StatisticsError."""
    with _explained(folder):
        found = [row for path in files(folder) for row in _rows(path)]
    return sorted((row for row in found if row.shown_at >= since), key=lambda row: row.shown_at)


def latest(folder: Path, count: int) -> list[OutcomeRecord]:
    """The rows of as many last months as have `count` rows, oldest first. Raises StatisticsError."""
    rows: list[OutcomeRecord] = []
    with _explained(folder):
        for path in reversed(files(folder)):
            rows = [*_rows(path), *rows]
            if len(rows) >= count:
                break
    return rows


def reset(folder: Path) -> int:
    """Delete all rows; returns their number. Raises StatisticsError."""
    count = len(read(folder, 0))
    with _explained(folder):
        for path in files(folder):
            path.unlink(missing_ok=True)
    return count


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name)) if folder.exists() else []


def _rows(path: Path) -> Iterator[OutcomeRecord]:
    descriptor = private_files.opened(path, os.O_RDONLY)
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, list) and len(row) == len(fields(OutcomeRecord)):
                yield OutcomeRecord(*row)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StatisticsError(f"{folder} cannot be used: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of at least one record."""

    shown: int
    accepted: int
    partly: int
    typed: int
    rejected: int
    ignored: int
    acceptance_rate: float
    """Share of the shown suggestions that were accepted, in full or in part."""
    characters_saved: int
    latency_ms_p50: float
    latency_ms_p95: float

    @classmethod
    def of(cls, records: Sequence[OutcomeRecord]) -> "Summary":
        """The figures of some records, at least one."""
        assert records
        outcomes = [each for each in get_args(Outcome) if each != "asked"]
        count = {outcome: sum(each.outcome == outcome for each in records) for outcome in outcomes}
        latencies = sorted(each.latency_ms for each in records)
        return cls(
            shown=len(records),
            **count,
            acceptance_rate=round((count["accepted"] + count["partly"]) / len(records), 4),
            characters_saved=sum(each.saved for each in records),
            latency_ms_p50=round(percentile(latencies, 0.5), 1),
            latency_ms_p95=round(percentile(latencies, 0.95), 1),
        )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The percentile of ordered values by the nearest-rank method; `share` is from 0 to 1."""
    rank = -(-share * len(ordered) // 1)
    return ordered[max(0, int(rank) - 1)]


def parted(records: Sequence[OutcomeRecord]) -> tuple[list[OutcomeRecord], dict[str, int]]:
    """The records of suggestions, and the number of requests sent to servers for edits, by model."""
    asked = Counter(each.model for each in records if each.outcome == "asked")
    return [each for each in records if each.outcome != "asked"], dict(asked)


def by_language(records: Iterable[OutcomeRecord]) -> dict[str, Summary]:
    """Summaries by language, the most used first."""
    found = _grouped(records, lambda each: each.language)
    return dict(sorted(found.items(), key=lambda item: -item[1].shown))


def by_day(records: Iterable[OutcomeRecord]) -> dict[str, Summary]:
    """Summaries by local day (YYYY-MM-DD), in order; days without a record are left out."""
    return dict(sorted(_grouped(records, lambda each: str(date.fromtimestamp(each.shown_at))).items()))


def _grouped(records: Iterable[OutcomeRecord], key: Callable[[OutcomeRecord], str]) -> dict[str, Summary]:
    groups = defaultdict[str, list[OutcomeRecord]](list)
    for each in records:
        groups[key(each)].append(each)
    return {name: Summary.of(group) for name, group in groups.items()}
