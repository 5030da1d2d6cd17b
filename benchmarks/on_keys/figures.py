"""Turn rows into figures: percentiles, and the tables that show them."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

PERCENTILES = (50, 95, 99)

LATENCY_PARTS = ("server", "queue", "encode", "denoise", "rewrite")

HEADLINE = (
    "fill_p50_ms",
    "fill_p95_ms",
    "server_p95_ms",
    "long_file_ratio",
    "encoded_tokens_per_keystroke",
    "resident_mb",
)
"""Keys of every record."""


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that `percent` percent of the values do not exceed; None for no values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-percent * len(ordered) // 100) - 1)] if ordered else None


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """Percentiles and count."""
    return {f"p{p}": percentile(values, p) for p in PERCENTILES} | {"count": len(values)}


def split(rows: Sequence[Any]) -> dict[str, Any]:
    """Latency of keystrokes, in total and by part, over those that called the model; `typed_through` ones did not."""
    asked = [row for row in rows if row.fill is not None]
    parts = [row.parts() for row in asked]
    return {
        "keystroke_ms": spread([row.milliseconds for row in rows]),
        "asked_ms": spread([row.milliseconds for row in asked]),
        "parts_ms": {name: spread([part[name] for part in parts]) for name in LATENCY_PARTS},
        "fill_ms": spread([part["encode"] + part["denoise"] for part in parts]),
        "server_ms": spread([row.parts()["server"] for row in rows]),
        "steps_mean": statistics.fmean(row.fill["steps"] for row in asked) if asked else None,
        "typed_through": len(rows) - len(asked),
        "shown": sum(row.shown for row in rows),
    }


def encoded(rows: Sequence[Any]) -> dict[str, dict[str, float | int | None]]:
    """Context tokens read per keystroke, by kind of key."""
    kinds = {row.kind for row in rows}
    return {
        kind: spread([row.fill["tokens_read"] if row.fill else 0 for row in rows if row.kind == kind])
        for kind in sorted(kinds)
    }


def same_work(long: Sequence[Any], short: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Latencies of the keys at which both documents called the model for passes over equally many tokens."""
    pairs = [(a, b) for a, b in zip(long, short, strict=True) if a.fill and b.fill]
    equal = [(a, b) for a, b in pairs if a.fill["passes"] == b.fill["passes"]]
    return [a.milliseconds for a, _ in equal], [b.milliseconds for _, b in equal]


def tables(record: Mapping[str, Any]) -> list[Table]:
    """The headline, and the parts of the latency."""
    first = Table("figure", "value", title="typing")
    for name in HEADLINE:
        first.add_row(name, _number(record[name]))
    second = Table("ms per keystroke", *(f"p{p}" for p in PERCENTILES), "count", title="where the time goes")
    typing = record["typing"]
    rows = {"all keys": typing["keystroke_ms"], "keys that asked the model": typing["asked_ms"], **typing["parts_ms"]}
    for name, row in rows.items():
        second.add_row(name, *(_number(row[f"p{p}"]) for p in PERCENTILES), str(row["count"]))
    return [first, second]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}" if isinstance(value, float) else str(value)
