"""Summarises records, in total, by language or by day."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import get_args

from mercury_lsp.statistics.store import Outcome, OutcomeRecord


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
