"""Nothing grows with the number of keys: memory, descriptors, threads and the cost of a key, of daemon and relay."""

import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from tests.support.editor import Editor, span
from tests.support.sharing import Place, eventually

URI = "file:///soak.py"

KEYS = int(os.environ.get("MERCURY_SOAK_KEYS", "1600"))
"""`make soak` asks for 200,000."""

LINE = "value = compute(other)"

GROWTH_BYTES = 16 * 2**20
"""What allocator and caches may add after a quarter of the keys, beside a tenth."""

STATISTICS_FILES = 3
"""The database, its log and its shared memory, opened seconds after the first suggestion."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


MAX_COST_RATIO = 1.1 if KEYS >= 20_000 else 2.0
"""What a key of the last quarter may cost beside one of the first three; a few keys tell little on a busy machine."""


class Held(NamedTuple):
    """What a process has."""

    descriptors: int
    threads: int
    memory: int


class Pace(NamedTuple):
    """What a quarter's keys took, in milliseconds each."""

    median: float
    """From the key to the answer."""
    processor: float
    """Processor time of daemon and relay."""


def held(process: int) -> Held:
    """What a process has now."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    descriptors, threads = (len(os.listdir(f"/proc/{process}/{kind}")) for kind in ("fd", "task"))
    return Held(descriptors, threads, pages * os.sysconf("SC_PAGE_SIZE"))


def processor_ms(process: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def descriptors_of_statistics(process: int) -> int:
    """How many files of the statistics a process has open."""
    return sum("statistics.sqlite" in os.path.realpath(link) for link in Path(f"/proc/{process}/fd").iterdir())


def type_keys(editor: Editor, count: int, version: int) -> tuple[int, list[float]]:
    """Type lines in the second line of a document, delete each, and ask behind every key.

    Returns the last version, and the seconds to each answer.
    """
    column, seconds = 0, []
    for _ in range(count):
        letter = LINE[column] if column < len(LINE) else ""
        end = 0 if letter == "" else column
        version += 1
        begun = time.perf_counter()
        editor.change(URI, version, {"range": span((1, end), (1, column)), "text": letter})
        column = column + 1 if letter else 0
        editor.result(editor.inline(URI, 1, column, 1))
        seconds.append(time.perf_counter() - begun)
    editor.change(URI, version + 1, {"range": span((1, 0), (1, column)), "text": ""})
    return version + 1, seconds


def test_nothing_grows_with_the_number_of_keys(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open(URI, "def compute(other):\n\n    return other\n" * 20)
        relay, daemon = editor.process.pid, unix.pid()
        version, seen, paces = 1, list[tuple[Held, Held]](), list[Pace]()
        for _ in range(4):
            before = processor_ms(relay) + processor_ms(daemon)
            version, seconds = type_keys(editor, KEYS // 4, version)
            editor.receive_all()
            used = processor_ms(relay) + processor_ms(daemon) - before
            paces.append(Pace(round(median(seconds) * 1000, 2), round(used / (KEYS // 4), 3)))
            eventually(lambda: descriptors_of_statistics(daemon) == STATISTICS_FILES)
            seen.append((held(relay), held(daemon)))
            editor.replies.clear()
            editor.notices.clear()
        assert unix.pid() == daemon
        for first, last in zip(seen[0], seen[-1], strict=True):
            assert last.descriptors <= first.descriptors and last.threads <= first.threads + 1
            assert last.memory <= first.memory * 1.1 + GROWTH_BYTES
        print(*seen, *paces, sep="\n")
        assert paces[-1].processor <= MAX_COST_RATIO * max(each.processor for each in paces[:-1])
