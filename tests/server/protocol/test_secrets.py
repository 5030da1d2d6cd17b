"""Secrets in an open document leave no trace: not in what the engine gets, nor in logs, statistics or messages."""

import sys
from pathlib import Path

import pytest

from tests.support.editor import Editor, script

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from on_secrets.corpus import corpus

URI = "file:///work/sample.py"


def test_planted_secrets_leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    planted = [each for number, each in enumerate(corpus(("python",))) if number % 8 == 0]
    blocks = [f"{each.text}\nvalue = 1\n" for each in planted]
    text = script(text="value(1)") + "x = \n" + "".join(blocks)
    with (tmp_path / "log").open("wb") as log, Editor(stderr=log) as editor:
        editor.initialize()
        editor.open(URI, text)
        told = []
        for line in range(1, text.count("\n"), 3):
            editor.items(URI, line, 0, kind=1)
            given = editor.request("test/given", {})
            told.append("".join((*given["far"], given["near"], *given["suffix"], *given["elsewhere"])))
        editor.receive_all()
        told.append(repr(editor.notices))
    told += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    leaked = {each.name for each in planted for part in each.parts for text in told if part in text}
    assert leaked == set() and len(told) > 50


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(
    ("begun", "rest", "shown"),
    [
        ("GITHUB_PAT=ad309a", "ebaa2c8aba470a6e1cdde764ed7545b573", []),
        ("revision = 'ad309a", "ebaa2c8aba470a6e1cdde764ed7545b573'", []),
        ("name = 3f4e170b", "-df5d-3ff5-cba6-57b892043052", []),
        ("material = 'q8Zx", "V2kLr0Tn7Yw4Pc9Mb3Xd5Hs1Jf6Ga'", []),
        ("result = utf8mb4_", "unicode_collation(value)", ["unicode_collation(value)"]),
    ],
)
def test_random_characters_are_not_completed(kind: int, begun: str, rest: str, shown: list[str]):
    with Editor() as editor:
        editor.initialize()
        escaped = "".join(f"\\u{ord(each):04x}" for each in rest)  # the script's own line would be hidden
        editor.open(URI, f'# [[{{"text": "{escaped}", "confidence": 1.0}}]]\n{begun}')
        assert [item["insertText"] for item in editor.items(URI, 1, len(begun), kind=kind)] == shown
