"""`mercury-lsp stats`: what happened to the suggestions shown on this machine."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mercury_lsp.commands.terminal import agrees, number, print_json, table
from mercury_lsp.completion.price import Price
from mercury_lsp.statistics import OutcomeRecord, store
from mercury_lsp.statistics.statistics import LEARNED_ROWS, learn
from mercury_lsp.statistics.store import Summary, by_day, by_language, parted

COLUMNS = {
    "shown": "{0.shown:,}",
    "accepted": "{0.accepted:,}",
    "partly": "{0.partly:,}",
    "taken": "{0.acceptance_rate:.0%}",
    "wrong": "{0.rejected:,}",
    "saved": "{0.characters_saved:,}",
    "p50 ms": "{0.latency_ms_p50:,.0f}",
    "p95 ms": "{0.latency_ms_p95:,.0f}",
}
"""By title, the format of a summary's figure."""

LEGEND = (
    "accepted: in full; partly: only the beginning; taken: share of the shown that you accepted, in full or partly;"
    " wrong: you typed something else, moved away or dismissed it; saved: characters that you did not type; p50, p95:"
    " time from request to answer"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days",
        type=number(int, 1, store.RETENTION_DAYS),
        default=30,
        metavar="N",
        help="the last N days (default: 30)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of tables")
    parser.add_argument("--reset", action="store_true", help="delete all counts")
    parser.add_argument("--yes", action="store_true", help="with --reset: do not ask for confirmation")


def run(arguments: argparse.Namespace) -> int:
    """Print or delete the figures."""
    path = store.default_path()
    if arguments.reset:
        if not arguments.yes and not agrees(f"Delete all counts in {path}?"):
            return 1
        deleted = store.reset(path)
        sys.stdout.write(f"deleted {deleted} {'row' if deleted == 1 else 'rows'}\n")
        return 0
    since = date.today() - timedelta(days=arguments.days - 1)
    records = store.read(path, datetime.combine(since, datetime.min.time()).timestamp())
    if arguments.json:
        print_json(_object(records, since))
    else:
        _print(records, arguments.days, path)
    return 0


def _print(rows: Sequence[OutcomeRecord], days: int, path: Path) -> None:
    console = Console(highlight=False)
    records, requests = parted(rows)
    for model, count in requests.items():
        console.print(f"{model} was sent {count:,} {'request' if count == 1 else 'requests'} for edits")
    if not records:
        console.print(f"No suggestions were counted in the last {days} days. Write some code, then try again.")
        return
    total = Summary.of(records)
    console.print(_table("language", by_language(records), total))
    console.print(_table("day", by_day(records), total))
    console.print(LEGEND, style="dim")
    for line in _levels(path):
        console.print(line)


def _table(key: str, rows: Mapping[str, Summary], total: Summary) -> Table:
    made = table()
    made.add_column(key, overflow="fold", min_width=len("2026-01-01"))
    for column in COLUMNS:
        made.add_column(column, justify="right", no_wrap=True)
    for name, summary in rows.items():
        made.add_row(name, *(form.format(summary) for form in COLUMNS.values()))
    made.add_section()
    made.add_row("all", *(form.format(total) for form in COLUMNS.values()), style="bold")
    return made


def _levels(path: Path) -> list[str]:
    """For each language, a sentence about how readily suggestions are shown with `eagerness: "auto"`."""
    price, rows = Price(), store.latest(path, LEARNED_ROWS)
    languages = {row.language: None for row in rows if learn(price, row)}
    return [price.explanation("auto", language) for language in languages]


def _object(rows: Sequence[OutcomeRecord], since: date) -> dict[str, object]:
    """The figures as JSON; `total` is null if nothing was counted."""
    records, requests = parted(rows)
    return {
        "since": since.isoformat(),
        "total": asdict(Summary.of(records)) if records else None,
        "by_language": {name: asdict(each) for name, each in by_language(records).items()},
        "edit_requests": requests,
        "by_day": {name: asdict(each) for name, each in by_day(records).items()},
    }
