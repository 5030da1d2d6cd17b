"""Milliseconds per fill while typing, with and without the caches: `python benchmarks/fills.py [--quick] [--json]`.

Types real held-out code character by character and asks for a fill after each one, with the silence gate as
the server sets it. In the same run: the same request with empty caches, and the reader alone decoding left to
right. Ratios are what to compare: machines differ and are shared.
"""

import argparse
import json
import platform
import statistics
import sys
from datetime import date
from pathlib import Path

from mercury_engine.engine import Engine
from mercury_engine.evaluation.infill import left_to_right

from mercury_lsp.context import ContextBuilder
from mercury_lsp.documents import Document

HERE = Path(__file__).parent
FILES = ("rich/columns.py", "click/formatting.py")


def keystrokes(engine: Engine, path: Path, count: int) -> list[dict[str, float]]:
    """Type `count` characters in the middle of the file; one row per keystroke."""
    text = path.read_text("utf-8")
    start = text.find("\n    def ", len(text) // 2) + 1
    typed, rest = text[start : start + count], text[start + count :]
    builder, alone = ContextBuilder(), left_to_right(engine)
    rows = []
    for number in range(1, len(typed) + 1):
        document = Document(path.as_uri(), "python", number, text[:start] + typed[:number] + rest)
        request = builder.build(document.snapshot(), start + number, path.name).request(give_up_below=engine.gate)
        if number == 1:
            engine.fill(request)
        warm = engine.fill(request)
        baseline = alone.fill(request)
        engine.cache.clear()
        cold = engine.fill(request)
        rows.append(
            {
                "warm": warm.elapsed,
                "cold": cold.elapsed,
                "left_to_right": baseline.elapsed,
                "steps": warm.steps,
                "left_to_right_steps": baseline.steps,
                "tokens_read": warm.tokens_read,
                "tokens_read_cold": cold.tokens_read,
            }
        )
    return rows


def summary(engine: Engine, rows: list[dict[str, float]]) -> dict[str, object]:
    """Medians and ratios of one run."""

    def median(key: str) -> float:
        return statistics.median(row[key] for row in rows)

    ordered = sorted(row["warm"] for row in rows)
    return {
        "fill_p50_ms": 1e3 * median("warm"),
        "fill_p95_ms": 1e3 * ordered[int(0.95 * (len(ordered) - 1))],
        "vs_empty_caches": median("cold") / median("warm"),
        "vs_left_to_right": median("left_to_right") / median("warm"),
        "steps_mean": statistics.mean(row["steps"] for row in rows),
        "left_to_right_steps_mean": statistics.mean(row["left_to_right_steps"] for row in rows),
        "tokens_read_empty_caches_p50": median("tokens_read_cold"),
        "keystrokes": len(rows),
        "model": engine.name,
        "device": engine.device,
        "machine": f"{platform.machine()}, {platform.system()}",
        "date": date.today().isoformat(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few keystrokes only")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    engine = Engine.load()
    files = FILES[:1] if options.quick else FILES
    folder = HERE.parent / "tests" / "data" / "held_out"
    rows = [row for name in files for row in keystrokes(engine, folder / name, 10 if options.quick else 20)]
    found = summary(engine, rows)
    text = json.dumps(found, indent=2)
    print(text)
    if not options.quick:
        (HERE / "results" / "fills.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
