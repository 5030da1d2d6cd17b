"""The pure parts of benchmarks/installation.py: sizes of what is installed, entries side by side."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import installation
from on_installation import sizes


def test_a_distribution_is_as_large_as_the_files_it_records(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    for name, size in (("large", 2_000_000), ("small", 500_000), ("pip", 9_000_000)):
        (site / f"{name}-1.dist-info").mkdir(parents=True)
        (site / f"{name}-1.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
        (site / f"{name}-1.dist-info" / "RECORD").write_text(f"{name}.py,,\nremoved.py,,\n")
        (site / f"{name}.py").write_bytes(bytes(size))
    found = sizes.installed(tmp_path)
    assert found == {"installed_mb": 2.5, "distributions": 2, "largest_mb": {"large": 2.0, "small": 0.5}}


def test_the_table_shows_the_fastest_start_of_each_entry() -> None:
    starts = {"alone_warm": [1.25, 3.5]}
    made = installation.table({"old": {"wheel_mb": 94.1}, "new": {"seconds_to_first_suggestion": starts}})
    columns = {str(column.header): list(column.cells) for column in made.columns}
    assert columns["old"][0] == "94.1"
    assert columns["new"][columns["what"].index("first suggestion, alone, warm (s)")] == "1.25"
