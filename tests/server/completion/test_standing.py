import pytest

from mercury_lsp.completion.postprocessing import without_standing
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document


@pytest.mark.parametrize(
    ("marked", "text", "kept"),
    [
        ("import os\nimport sys\n|\n", "import os", ""),
        ("import os\n|\n", "import json\nimport os\nimport re", "import json"),
        ("import os\nimport |\n", "os", ""),
        ("import os\n|\n", "import os.path", None),
        ("from typing import Any, cast\nfrom typing import |\n", "Any", ""),
        ("from typing import Any\nfrom typing import |\n", "Any, cast", None),
        ("#include <stdio.h>\n|\n", "#include <stdio.h>", ""),
        ("from |\n\nclass Circle:\n    pass\n", "shapes import Circle", ""),
        ("import os\n|\n\nclass Circle:\n    pass\n", "from shapes import Circle\nimport re", ""),
        ("import os\n|\n\nclass Circle:\n    pass\n", "from shapes import Square", None),
        ('x = {\n    "a": 1,\n    |\n}\n', '"a": 2,', ""),
        ('x = {\n    "a": 1,\n    "|\n    "b": 2,\n}\n', 'b": 3,', ""),
        ('x = {\n    "a": 1,\n    |\n}\n', '"b": 1,\n    "c": 2,\n    "b": 3,', '"b": 1,\n    "c": 2,'),
        ('x = {\n    "a": {\n        "b": 1,\n    },\n    |\n}\n', '"b": 2,', None),
        ("x = {\n  a: 1,\n  |\n}\n", "a: 2", ""),
        ('x = [\n    "a",\n    "b",\n    |\n]\n', '"b",', ""),
        ('x = [\n    "a",\n    |\n]\n', '"b",\n    "a",', '"b",'),
        ("x = [\n    0,\n    |\n]\n", "0,", None),
        ('x = ["a", "b", |]\n', '"b"', ""),
        ('x = ["a", "b", "|"]\n', "c", None),
        ("if x:\n    f()\n    |\n", "f()", None),
        ("switch (x) {\n  case 1: break;\n  |\n}\n", "case 2: break;", None),
    ],
)
def test_what_stands_already_is_cut_off(marked: str, text: str, kept: str | None):
    before, after = marked.split("|")
    snapshot = Document("file:///a.py", "python", 1, before + after).snapshot()
    context = ContextBuilder().build(snapshot, len(before), None)
    assert without_standing(text, context, snapshot) == (text if kept is None else kept)
