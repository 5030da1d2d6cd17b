"""Nothing grows with the number of keys: memory, descriptors, threads and the cost of a key, of daemon and relays."""

import json
import os
import platform
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from tests.support.editor import Editor, span
from tests.support.sharing import Place

KEYS = int(os.environ.get("MERCURY_SOAK_KEYS", "1600"))
"""Of all editors together; `make soak` asks for 200,000."""

EDITORS = 4

RECORD = os.environ.get("MERCURY_SOAK_OUT")
"""File for what was measured; docs/draw_soak.py draws it."""

BUNDLED = os.environ.get("MERCURY_SOAK_MODEL") == "bundled"
"""With the bundled model in place of an engine that answers at once."""

SAMPLES = 100 if KEYS >= 20_000 else 8

SOURCES = sorted((Path(__file__).parents[2] / "data" / "code").rglob("*.py"))
"""Each editor types in three of them."""

MIN_LINE, MAX_LINE = 8, 80
"""Characters of a line that is typed again."""

GROWTH_BYTES = 16 * 2**20
"""What allocator and caches may add after a quarter of the keys, beside a tenth."""

MAX_COST_RATIO = 1.1 if KEYS >= 20_000 else 2.0
"""What a key of the last quarter may cost beside one of the first three; a few keys tell little on a busy machine."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


class Held(NamedTuple):
    """What a process has."""

    descriptors: int
    """Without those of the statistics, which are opened some time after an editor's first suggestion."""
    threads: int
    memory: int
    """Resident bytes."""


class Sample(NamedTuple):
    """What was measured after so many keys."""

    keys: int
    daemon: Held
    relay: Held
    """The first editor's."""
    answer_ms: float
    """From a key to its answer, median since the last sample."""
    processor_ms: float
    """Processor time of daemon and relays for a key since the last sample."""


def held(process: int) -> Held:
    """What a process has now."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    opened = (os.path.realpath(each) for each in Path(f"/proc/{process}/fd").iterdir())
    descriptors = sum(not each.endswith(".jsonl") for each in opened)
    return Held(descriptors, len(os.listdir(f"/proc/{process}/task")), pages * os.sysconf("SC_PAGE_SIZE"))


def processor_ms(process: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


class Typist:
    """Types lines of source files again, chosen at random, and asks behind every key."""

    def __init__(self, editor: Editor, number: int):
        self.editor = editor
        self._random = random.Random(number)
        sources = self._random.sample(SOURCES, 3)
        self._lines = {f"file:///{each.stem}{number}.py": each.read_text("utf-8").split("\n") for each in sources}
        self._versions = dict.fromkeys(self._lines, 1)
        for uri, lines in self._lines.items():
            editor.open(uri, "\n".join(lines))

    def type(self, count: int) -> list[float]:
        """Type at least so many keys, up to the end of a line; seconds to each answer."""
        seconds: list[float] = []
        while len(seconds) < count:
            uri, lines = self._random.choice(list(self._lines.items()))
            row = self._random.choice([at for at, line in enumerate(lines) if MIN_LINE <= len(line) <= MAX_LINE])
            line = lines[row]
            start = len(line) - len(line.lstrip())
            self._edit(uri, (row, start), (row, len(line)), "")
            for column in range(start, len(line)):
                begun = time.perf_counter()
                self._edit(uri, (row, column), (row, column), line[column])
                self.editor.reply(self.editor.inline(uri, row, column + 1))
                seconds.append(time.perf_counter() - begun)
        self.editor.replies.clear()
        self.editor.notices.clear()
        return seconds

    def _edit(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self._versions[uri] += 1
        self.editor.change(uri, self._versions[uri], {"range": span(start, end), "text": text})


def editor_of(place: Place) -> Editor:
    """An editor on the daemon with the engine that is wanted."""
    if not BUNDLED:
        return place.editor().initialize()
    command = [sys.executable, "-m", "mercury_lsp", *place.address.arguments]
    editor = Editor(command=command, env=place.env)
    editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    editor.notify("initialized", {})
    return editor


def sampled(place: Place) -> list[Sample]:
    """Type all keys; what was measured after each part of them."""
    editors = [editor_of(place) for _ in range(EDITORS)]
    typists = [Typist(editor, number) for number, editor in enumerate(editors)]
    daemon, relays = place.pid(), [editor.process.pid for editor in editors]
    samples: list[Sample] = []
    keys = 0
    with ThreadPoolExecutor(EDITORS) as pool:
        while keys < KEYS:
            spent = sum(map(processor_ms, (daemon, *relays)))
            parts = pool.map(lambda each: each.type(KEYS // SAMPLES // EDITORS), typists)
            seconds = [each for part in parts for each in part]
            spent = sum(map(processor_ms, (daemon, *relays))) - spent
            keys += len(seconds)
            figures = round(median(seconds) * 1000, 2), round(spent / len(seconds), 3)
            samples.append(Sample(keys, held(daemon), held(relays[0]), *figures))
            if RECORD:
                Path(RECORD).write_text(json.dumps(record(samples), indent=1) + "\n")
    assert place.pid() == daemon
    for each in editors:
        each.__exit__(None)
    return samples


def record(samples: list[Sample]) -> dict[str, Any]:
    """The samples as JSON, with the circumstances."""
    return {
        "engine": "bundled" if BUNDLED else "instant",
        "editors": EDITORS,
        "keys": [each.keys for each in samples],
        "daemon_mb": [round(each.daemon.memory / 1e6, 1) for each in samples],
        "relay_mb": [round(each.relay.memory / 1e6, 1) for each in samples],
        "answer_ms": [each.answer_ms for each in samples],
        "processor_ms": [each.processor_ms for each in samples],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_average": round(os.getloadavg()[0], 1),
        "date": date.today().isoformat(),
    }


def test_nothing_grows_with_the_number_of_keys(unix: Place):
    samples = sampled(unix)
    quarter = len(samples) // 4
    first, last = samples[quarter - 1], samples[-1]
    print(*samples[quarter - 1 :: quarter], sep="\n")
    for early, late in ((first.daemon, last.daemon), (first.relay, last.relay)):
        assert late.descriptors <= early.descriptors and late.threads <= early.threads + 1
        assert late.memory <= early.memory * 1.1 + GROWTH_BYTES
    costs = [median(each.processor_ms for each in samples[at : at + quarter]) for at in range(0, 4 * quarter, quarter)]
    assert costs[-1] <= MAX_COST_RATIO * max(costs[:-1])
