"""Nothing grows with the number of keys: neither memory, descriptors nor threads, of the daemon and of the hub."""

import os
import sys
from pathlib import Path
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


class Held(NamedTuple):
    """What a process has."""

    descriptors: int
    threads: int
    memory: int


def held(process: int) -> Held:
    """What a process has now."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    descriptors, threads = (len(os.listdir(f"/proc/{process}/{kind}")) for kind in ("fd", "task"))
    return Held(descriptors, threads, pages * os.sysconf("SC_PAGE_SIZE"))


def descriptors_of_statistics(process: int) -> int:
    """How many files of the statistics a process has open."""
    return sum("statistics.sqlite" in os.path.realpath(link) for link in Path(f"/proc/{process}/fd").iterdir())


def type_keys(editor: Editor, count: int, version: int) -> int:
    """Type lines in the second line of a document, delete each, and ask behind every key; returns the last version."""
    column = 0
    for _ in range(count):
        letter = LINE[column] if column < len(LINE) else ""
        end = 0 if letter == "" else column
        version += 1
        editor.change(URI, version, {"range": span((1, end), (1, column)), "text": letter})
        column = column + 1 if letter else 0
        editor.result(editor.inline(URI, 1, column, 1))
    editor.change(URI, version + 1, {"range": span((1, 0), (1, column)), "text": ""})
    return version + 1


def test_nothing_grows_with_the_number_of_keys(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open(URI, "def compute(other):\n\n    return other\n" * 20)
        hub, daemon = unix.hub(), unix.pid()
        assert hub is not None
        version, seen = 1, list[tuple[Held, Held]]()
        for _ in range(4):
            version = type_keys(editor, KEYS // 4, version)
            editor.receive_all()
            eventually(lambda: descriptors_of_statistics(daemon) == STATISTICS_FILES)
            seen.append((held(hub), held(daemon)))
            editor.replies.clear()
            editor.notices.clear()
        assert (unix.hub(), unix.pid()) == (hub, daemon)
        for first, last in zip(seen[0], seen[-1], strict=True):
            assert last.descriptors <= first.descriptors and last.threads <= first.threads + 1
            assert last.memory <= first.memory * 1.1 + GROWTH_BYTES
        print(*seen, sep="\n")
