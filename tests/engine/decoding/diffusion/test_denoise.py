"""The loop: what the documentation shows of it."""

import inspect
import re
from pathlib import Path
from textwrap import dedent

from mercury_engine.decoding.diffusion.denoise import denoise

PAGE = Path(__file__).parents[4] / "docs" / "diffusion.md"


def test_the_page_begins_with_the_loop_as_it_runs():
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    body = inspect.getsource(denoise).split('"""')[2]
    assert dedent(body).strip() == found[1].strip()
