"""Measure the cost of a large workspace: `python benchmarks/workspace.py [--quick] [--json] [--out FILE]`.

It makes a workspace of 50,000 small files, indexes them as the server does in the background, and measures time and
memory. Then it types into the server during another indexing, and again after it: the same keys in the same document,
so that the ratio of the two times is the cost of indexing for a user who types.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mercury_lab.evaluation import suite
from on_all import options as options_of_all
from on_keys import editor, figures
from rich.table import Table

from mercury_lsp.context.workspace.background import Pace
from mercury_lsp.context.workspace.library import Library

FILES_IN_FOLDER = 20
MODULE = (
    "import os\n\n\nclass Part{0}:\n    size = {0}\n\n    def combine(self, other):\n        return self.size + other\n"
)
IGNORED = "*.log\nbuild/\n*.pyc\n__pycache__/\n.cache\n*.tmp\n/docs/_build\n*.swp\n.coverage\n*.egg-info\n"
MAIN = (
    "from pkg0.mod0.file3 import Part3\n\n\ndef main(part: Part3, count: int):\n    total = 0\n    \n    return total\n"
)
TYPED_TEXT = "vtq = kparz.zombine(xqjot)"
"""Text that no suggestion would contain, so that every key calls the model."""


QUICK_SIZES = {"files": 5_000, "rounds": 2}
FULL_SIZES = {"files": 50_000, "rounds": 5}


def main() -> int:
    parser = options_of_all.parser("workspace", __doc__)
    parser.add_argument("--quick", action="store_true", help="5,000 files and two rounds")
    options = parser.parse_args()
    sizes = QUICK_SIZES if options.quick else FULL_SIZES
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        make(root, sizes["files"])
        found = indexed(root) | typing(root, Path(folder) / "fills.jsonl", sizes["rounds"], options.model)
    circumstances = {
        "quick": options.quick,
        **options_of_all.circumstances(),
    }
    suite.deliver(found | circumstances, table(found), options)
    return 0


def make(root: Path, files: int) -> None:
    """Make a workspace of `files` files in nested folders, with a .gitignore."""
    for number in range(files):
        folder = root / f"pkg{number // 1000}" / f"mod{number // FILES_IN_FOLDER % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text(MODULE.format(number))
    (root / ".git").mkdir()
    (root / ".gitignore").write_text(IGNORED)


def indexed(root: Path) -> dict[str, Any]:
    """Index all files at the pace of the background: elapsed seconds, processor seconds, and memory."""
    pace = Pace()
    library = Library(pace, lambda *_: None, lambda _: None)
    before, started, worked = editor.resident_mb(os.getpid()), time.monotonic(), time.thread_time()
    library.open((root,))
    while library.step():
        pace.rest_if_due()
    after = editor.resident_mb(os.getpid())
    return {
        "files": len(library.index),
        "index_seconds": time.monotonic() - started,
        "index_processor_seconds": time.thread_time() - worked,
        "added_mb": after - before if after is not None and before is not None else None,
    }


def typing(root: Path, record: Path, rounds: int, model: str | None) -> dict[str, Any]:
    """Milliseconds per key during indexing and after it."""
    main = root / "main.py"
    main.write_text(MAIN)
    times: dict[str, list[float]] = {"during": [], "after": []}
    with editor.server(root, record, max(1, (os.cpu_count() or 2) // 2), model) as typist:
        typist.open(main.as_uri(), "python", MAIN, MAIN.index("    \n") + 4)
        typist.retype(main.as_uri(), MAIN, TYPED_TEXT)  # fills the caches
        for _ in suite.progress(range(rounds), "typing"):
            time.sleep(REST_SECONDS)  # before both, because everything is slower after a rest
            typist.changed((root / ".gitignore").as_uri())  # makes the server index everything again
            times["during"] += typist.retype(main.as_uri(), MAIN, TYPED_TEXT)
            time.sleep(REST_SECONDS)
            times["after"] += typist.retype(main.as_uri(), MAIN, TYPED_TEXT)
    return {
        "during_ms": figures.spread(times["during"]),
        "after_ms": figures.spread(times["after"]),
        "ratio_p50": statistics.median(times["during"]) / statistics.median(times["after"]),
        "ratio_mean": statistics.fmean(times["during"]) / statistics.fmean(times["after"]),
    }


REST_SECONDS = 8
"""Seconds after which the files are surely found."""


def table(found: dict[str, Any]) -> Table:
    shown = Table("figure", "value")
    for name, value in found.items():
        shown.add_row(name, f"{value:.2f}" if isinstance(value, float) else str(value))
    return shown


if __name__ == "__main__":
    sys.exit(main())
