"""Engines whose fills run on pages, as on a GPU, and gaps to compare them at."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from mercury_engine.api import Fill, FillRequest
from mercury_engine.models.paged_reader import LEAST_PAGES, PagedReader
from mercury_engine.models.torch_network import TorchNetwork
from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

from tests.support import tiny

SMALL_PAGE = 16


def verifying(folder: Path | None, device: torch.device | None = None, page_size: int = SMALL_PAGE, fills: int = 1):
    """An engine whose fills run on pages, with room for so many; on a CPU, which would not use them, it gets them."""
    device = device or torch.device("cpu")
    engine = Engine.load(folder, device=device.type, dtype=torch.float32)
    assert isinstance(engine.reader, TorchNetwork)
    reader = PagedReader(engine.reader.decoder, None if fills == 1 else fills * LEAST_PAGES, page_size)
    return Engine(replace(engine.parts, paged=reader))


def real_gaps(each: int, seed: int = 0) -> Iterator[FillRequest]:
    """Gaps of every kind in real files with the nearest part of their context; every other has text to look up.

    They count as prose, because fills of whole lines of code, whose end is looked for, take the plain loop.
    """
    for number, gap in enumerate(gaps(tiny.HELD_OUT, each, seed, GAP_KINDS)):
        lookup = (tiny.SAMPLE[:4000], tiny.SAMPLE[-4000:]) if number % 2 else ()
        request = gap.request
        far, suffix = request.far[-2:], request.suffix[:3]
        yield replace(request, far=far, suffix=suffix, lookup_text=lookup, max_slots=10, prose=True)


def alike(found: Fill, expected: Fill) -> None:
    """Assert that two fills are the same, token for token and step for step."""
    assert (found.text, found.steps, found.unsure_from) == (expected.text, expected.steps, expected.unsure_from)
    assert found.confidence == pytest.approx(expected.confidence, rel=1e-3)
