"""Gaps in tested code: `python -m mercury_lab.evaluation doctests FOLDER --out FILE [--line] [--limit N] [--seed N]`.

Chooses gaps of 2 to 7 whole lines in functions that have doctests, or with `--line` the rest of one, one in each Python
file below FOLDER that imports the standard library only, and writes them in the format of HumanEval-Infilling, for
`humaneval --data FILE`. A gap is kept if the doctests pass with its own text and fail without. It runs the code in
FOLDER, as `humaneval` does.
"""

import argparse
import ast
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from mercury_engine.errors import RequestError

from mercury_lab.evaluation.humaneval import Task, passes

LINES = range(2, 8)
"""Lines of a gap of several."""

ONE_LINE = range(1, 2)

MOST_CHARS = 9_000
"""Longest file; a model of editors sees about as much."""

SECONDS = 5
"""Time that a function's doctests may take."""

TEST = """
def check(candidate):
    import doctest
    runner = doctest.DocTestRunner(verbose=False)
    for each in doctest.DocTestFinder(recurse=False).find(candidate, "candidate", module=False, globs=globals()):
        runner.run(each)
    assert runner.tries > 0 and runner.failures == 0
"""


def tasks(folder: Path, seed: int, lines: range = LINES) -> Iterator[Task]:
    """Gaps of so many lines in a folder's files, in random order; one line is a gap from a place in it on."""
    rng = random.Random(seed)
    paths = sorted(folder.rglob("*.py"))
    rng.shuffle(paths)
    for path in paths:
        try:
            text = path.read_text("utf-8")
            spans = list(_spans(text, lines)) if len(text) <= MOST_CHARS else []
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        if spans:
            function, first, last, end = rng.choice(spans)
            parts = text.splitlines(keepends=True)
            before, gap, after = ("".join(parts[a:b]) for a, b in ((0, first - 1), (first - 1, last), (last, end)))
            name = f"{path.relative_to(folder).as_posix()}/{function}/L{first}_{last}"
            if lines == ONE_LINE:
                gap = gap.rstrip("\r\n")
                indent = len(gap) - len(gap.lstrip())
                typed = rng.choice((indent, rng.randrange(indent, len(gap))))
                task = Task(f"SingleLine/{name}", before + gap[:typed], "\n" + after, gap[typed:], TEST, function)
            else:
                task = Task(f"MultiLine/{name}", before, after or "\n", gap, TEST, function)
            if passes(task.program(task.canonical_solution), SECONDS) and not passes(task.program(""), SECONDS):
                yield task


def _spans(text: str, sizes: range) -> Iterator[tuple[str, int, int, int]]:
    """Functions with the first and last line of a gap in each, counted from 1, and the last line of the program."""
    tree = ast.parse(text)
    if not _imports(tree) <= sys.stdlib_module_names:
        return
    lines = text.splitlines()
    end = next((number for number, line in enumerate(lines) if line.startswith("if __name__")), len(lines))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and ">>>" in (ast.get_docstring(node) or ""):
            inside = [each for part in node.body[1:] for each in ast.walk(part) if isinstance(each, ast.stmt)]
            starts = sorted({each.lineno for each in inside})
            ends = sorted({each.end_lineno or each.lineno for each in inside})
            yield from (
                (node.name, first, last, end)
                for first in starts
                for last in ends
                if last - first + 1 in sizes and last <= end
            )


def _imports(tree: ast.Module) -> set[str]:
    """The top-level packages that a module imports; "." for its own."""
    names = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    names |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("doctests", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the data file")
    parser.add_argument("--line", action="store_true", help="the rest of one line, after its indentation or in it")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    found = list(islice(tasks(options.folder, options.seed, ONE_LINE if options.line else LINES), options.limit))
    if not found:
        raise RequestError(f"{options.folder} has no functions whose doctests run with the standard library alone")
    options.out.write_text("".join(json.dumps(asdict(task)) + "\n" for task in found), "utf-8")
    print(f"{len(found)} gaps in {options.out}")
    return 0
