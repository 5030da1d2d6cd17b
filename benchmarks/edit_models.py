"""Recorded answers of edit models through the whole server: `python benchmarks/edit_models.py FOLDER [--model NAME]`.

FOLDER holds scenarios with recorded answers and a `replay.py` that plays one through a server over LSP; neither is part
of this repository. The score is the mean gain in character F times the harmonic mean of the shares shown and quiet,
once for what the server makes of the answers, and once for the answers as they are.
"""

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from mercury_engine.prompt.edit_families import family_of
from mercury_engine.prompt.edit_families.answers import new_text
from mercury_engine.prompt.edit_families.window import Window
from on_all import options as options_of_all

MODELS = ("zeta-2", "mercuryapi")

WINDOW = re.compile(r"(?:<<<<<<< CURRENT\n(.*)=======\n|<\|code_to_edit\|>\n(.*)<\|/code_to_edit\|>)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--server", default=str(Path(sys.executable).parent / "mercury-lsp"))
    parser.add_argument("--out", type=Path, default=options_of_all.BENCHMARKS / "results" / "edit-models.json")
    options = parser.parse_args()
    replay = loaded(options.folder / "replay.py")
    record = {model: played(replay, options, model) for model in options.model or MODELS}
    options.out.write_text(json.dumps(record | options_of_all.circumstances(), indent=1) + "\n")
    return 0


def loaded(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("replay", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def played(replay: ModuleType, options: argparse.Namespace, model: str) -> dict[str, Any]:
    """A model's scenarios, and the scores."""
    rows = []
    for path in sorted(options.folder.glob("*.json")):
        recorded = json.loads(path.read_text())
        scenario = replay.parse(recorded["text"])
        answer = recorded["answers"][model][0]
        plain = plain_text(scenario["buffer"], answer)
        by_server = replay.run(options.server, scenario, answer["answer"], model)
        row = {"scenario": scenario["id"], "wants_edit": bool(scenario["expected"]), "requests": by_server["asked"]}
        row |= {
            name: judged(replay, scenario, text) for name, text in (("server", by_server["final"]), ("plain", plain))
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"server": score(rows, "server"), "plain": score(rows, "plain"), "scenarios": rows}


def plain_text(buffer: str, answer: Any) -> str:
    """The buffer with the whole answer in the place of the window that was asked about."""
    body = answer["request"]
    family = family_of(body["model"])
    found = WINDOW.search(body["prompt"] if "prompt" in body else body["messages"][0]["content"])
    assert family is not None and found is not None
    text = (found[1] or found[2]).replace(family.cursor, "")
    return f"{buffer}\n".replace(text, new_text(family, Window("", text, 0), answer["answer"]) or text, 1)[:-1]


def judged(replay: ModuleType, scenario: Any, final: str) -> dict[str, Any]:
    """What came of a scenario: whether anything was shown, the gain (0 to 100), and whether it is the expected text."""
    before, expected = scenario["buffer"].rstrip("\n"), scenario["expected"]
    final = final.rstrip("\n")
    shown = final != before
    if not expected:
        return {"shown": shown}
    changes = [replay.delta(before.split("\n"), text.split("\n")) for text in (final, expected)]
    return {"shown": shown, "gain": round(replay.chrf(*changes), 1), "exact": final == expected}


def score(rows: Sequence[Any], side: str) -> dict[str, Any]:
    wanted, silent = ([row[side] for row in rows if row["wants_edit"] is wants] for wants in (True, False))
    shown, quiet = fmean(row["shown"] for row in wanted), fmean(not row["shown"] for row in silent)
    gain = fmean(row["gain"] for row in wanted)
    gate = 2 * shown * quiet / (shown + quiet) if shown + quiet else 0.0
    figures = {"score": gain * gate / 100, "gain": gain, "shown": shown, "quiet": quiet}
    return {name: round(value, 3) for name, value in figures.items()} | {"exact": sum(row["exact"] for row in wanted)}


if __name__ == "__main__":
    sys.exit(main())
