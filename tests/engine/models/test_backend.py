"""What a model is computed in, by the device it is on, and what memory is let go of."""

import logging
import re
from pathlib import Path

import pytest
import torch
from mercury_engine.models import backend

GPU = torch.device("cuda")


@pytest.mark.parametrize(("capability", "dtype"), [((7, 5), torch.float32), ((8, 0), torch.bfloat16)])
def test_a_gpu_without_bfloat16_computes_in_float32_and_the_log_says_so(monkeypatch, caplog, capability, dtype):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "A GPU")
    with caplog.at_level(logging.WARNING):
        assert backend._dtype(GPU) is dtype
    assert caplog.text.count("A GPU (compute capability 7.5)") == (dtype is torch.float32)


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


def test_only_code_that_is_as_in_its_file_may_be_let_go_of():
    assert backend._CODE_AS_IN_THE_FILE.findall(WRITTEN_AND_NOT) == [("20", "2a")]


@pytest.mark.skipif(not SMAPS.exists(), reason="Linux only")
def test_code_that_was_let_go_of_runs_again():
    def mapped() -> int:
        found = re.findall(r" r-xp .*libtorch_cpu.*\n(?:(?!Rss)[A-Z].*\n)*Rss: +(\d+) kB", SMAPS.read_text())
        return sum(map(int, found))

    before = mapped()
    backend.let_go_of_code()
    assert mapped() < before
    assert torch.equal(torch.ones(2, 3) @ torch.ones(3, 2), torch.full((2, 2), 3.0))
