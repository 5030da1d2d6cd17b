"""Compare the edit formats that a model may have been trained on, on real commits.

`python -m mercury_lab.evaluation edit-formats --model M --mirror DIR [--formats A B] [--limit N]` judges the same
positions of the development half once in each format, as `commits` does, and then says at how many of them only one
of the formats is useful, or quiet where silence is right. Take the better one by writing its family to the file
`edit_format.json` in the model's folder: {"family": "sweep-server"}.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from mercury_engine.loading import find_model
from mercury_engine.prompt.edit_formats.edit_format import TEMPLATE_FILE
from mercury_engine.prompt.edit_formats.families import FAMILIES

from mercury_lab.commit_edits import run
from mercury_lab.commit_edits.position import Texts, read_list
from mercury_lab.commit_edits.run import Judged
from mercury_lab.evaluation import suite

FORMATS = tuple(each.family for each in FAMILIES)


def in_format(model: Path, family: str, folder: Path) -> Path:
    """A folder with links to the model's files, which names another format."""
    made = folder / family
    made.mkdir()
    for file in [model] if model.is_file() else model.iterdir():
        if file.name != TEMPLATE_FILE:
            (made / file.name).symlink_to(file.absolute())
    (made / TEMPLATE_FILE).write_text(json.dumps({"family": family}), "utf-8")
    return made


def paired(first: Sequence[Judged], second: Sequence[Judged]) -> suite.SuiteRecord:
    """Positions at which only one of two formats is right: useful where an edit is wanted, else silent."""

    def right(found: Sequence[Judged]) -> set[tuple[str, str]]:
        return {(each.position, each.way) for each in found if (each.is_useful if each.wants else not each.is_shown)}

    good, other = right(first), right(second)
    return {"both": len(good & other), "only_first": len(good - other), "only_second": len(other - good)}


def main(argv: list[str]) -> int:
    parser = run.option_parser("edit-formats", __doc__)
    parser.add_argument("--formats", nargs=2, choices=FORMATS, default=("sweep", "sweep-server"), help="the formats")
    options = parser.parse_args(argv)
    if options.held_out or options.texts:
        parser.error("formats are compared on the development half, without --texts")
    listed, found = read_list(options.list), dict[str, list[Judged]]()
    model = find_model(options.model)
    with TemporaryDirectory(prefix="mercury-") as scratch, Texts(options.mirror, listed.sources) as texts:
        for family in options.formats:
            own = {**vars(options), "model": str(in_format(model, family, Path(scratch)))}
            record = run.Record(_record(options.record, family), {"format": family, "model": str(model)})
            positions = run.chosen(listed.half("develop"), options.limit)
            for _ in run.ask_server(positions, texts, record, argparse.Namespace(**own)):
                pass
            names = {at.name for at in positions}
            found[family] = [each for each in record.found if each.position in names]
    result = _result(model, found, options)
    table, pair = run.results_table(result), result["paired"]
    first, second = options.formats
    table.caption = (
        f"right in both formats: {pair['both']}, only in {first}: {pair['only_first']}, only in {second}: "
        f"{pair['only_second']}"
    )
    suite.deliver(result, table, options, lambda *_: None)
    return 0


def _record(path: Path | None, family: str) -> Path | None:
    return path and path.with_name(f"{path.stem}-{family}{path.suffix}")


def _result(model: Path, found: Mapping[str, list[Judged]], options: argparse.Namespace) -> suite.SuiteRecord:
    ways = {
        f"{family}, {way}": run.figures_by_group([each for each in own if each.way == way], options.seed)
        for family, own in found.items()
        for way in options.ways
    }
    return {
        "model": str(model),
        "limit": options.limit,
        "seed": options.seed,
        "machine": suite.machine(options.device or "cpu"),
        "paired": {"formats": list(options.formats), **paired(*found.values())},
        "ways": ways,
        "answers": [
            asdict(each) | {"format": family} for family, own in found.items() for each in own if each.is_shown
        ],
    }
