"""Freed memory and code that is not running go back to the system."""

import re
from pathlib import Path

import numpy as np
import pytest
from mercury_engine.models import memory

SMAPS = Path("/proc/self/smaps")

WRITTEN_AND_NOT = """\
10-18 r-xp 00000000 08:01 12 /lib/patched.so
Rss:                   8 kB
Anonymous:             4 kB
18-20 r--p 00000000 08:01 12 /lib/data.so
Anonymous:             0 kB
20-2a r-xp 00000000 08:01 13 /lib/a name with blanks.so
Rss:                  16 kB
Anonymous:             0 kB
2a-30 r-xp 00000000 00:01 14 /memfd:generated (deleted)
Anonymous:            24 kB
30-38 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
"""


def test_only_unmodified_code_is_unmapped():
    assert memory._UNMODIFIED_CODE.findall(WRITTEN_AND_NOT) == [("20", "2a")]


@pytest.mark.skipif(not SMAPS.exists(), reason="Linux only")
def test_unmapped_code_runs_again():
    def mapped() -> int:
        found = re.findall(r" r-xp .*_multiarray_umath.*\n(?:(?!Rss)[A-Z].*\n)*Rss: +(\d+) kB", SMAPS.read_text())
        return sum(map(int, found))

    before = mapped()
    memory.unmap_library_code()
    assert mapped() < before
    assert np.array_equal(np.ones((2, 3)) @ np.ones((3, 2)), np.full((2, 2), 3.0))
