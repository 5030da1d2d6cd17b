"""The pages for newcomers name paths that exist, fit on a screen or two, and are all reachable in the site."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "mercury_lsp", ROOT / "engine" / "mercury_engine", ROOT / "kernels" / "mercury_kernels")
PAGES = tuple(page for page in (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md") if page.exists())
README_LINES = 120

SUFFIXES = (".py", ".md", ".c", ".h", ".toml", ".json", ".lua", ".ts")


def named_paths(page: Path) -> list[str]:
    """The paths and modules in backticks: what has a slash or the suffix of a source file."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = re.findall(r"`([\w./*-]+)`", text)
    return [word for word in words if word.endswith(SUFFIXES) or re.search(r"\w/", word)]


def exists(name: str) -> bool:
    """Whether the repository has this path, from its root, from a package's, or anywhere if it is a bare file name."""
    name = name.rstrip("/")
    roots = (ROOT, *PACKAGES)
    if any(any(root.glob(name)) for root in roots):
        return True
    return "/" not in name and any(True for package in PACKAGES for _ in package.rglob(name))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_the_page_names_exists(page: Path):
    paths = named_paths(page)
    assert paths
    assert [path for path in paths if not exists(path)] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES


def test_every_link_of_the_readme_leads_to_a_file():
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", (ROOT / "README.md").read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_page_is_in_the_navigation_of_the_site():
    docs = ROOT / "docs"
    navigation = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    assert {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} == navigation


def table_row(page: str, start: str) -> list[str]:
    """The cells of the only row of a page's tables that begins so."""
    [row] = [line for line in (ROOT / page).read_text("utf-8").splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_readme_gives_the_memory_that_was_measured():
    measured = [int(cell.removesuffix(" MB").replace(",", "")) for cell in table_row("docs/figures.md", "resident")[1:]]
    given = [
        table_row("README.md", name)[2] for name in ("bundled, 135M", "`qwen2.5-coder-0.5b`", "`qwen2.5-coder-1.5b`")
    ]
    assert [float(cell.removesuffix(" GB")) for cell in given] == [round(megabytes / 1000, 2) for megabytes in measured]


@pytest.mark.parametrize(
    ("model", "record"),
    [("bundled, 135M", "replay-levels"), ("`qwen2.5-coder-0.5b`", "replay-levels-qwen2.5-coder-0.5b")],
)
def test_the_readme_gives_the_keystrokes_saved_that_were_measured(model, record):
    path = ROOT / "benchmarks" / "results" / f"{record}.json"
    row = json.loads(path.read_text("utf-8"))["levels"]["medium"]
    saved, of_no_use = f"{row['keystrokes_saved']:.0%}", 100 / row["not_taken_per_100"]
    assert table_row("README.md", model)[5:7] == [
        saved.replace("%", " %"),
        f"once in {of_no_use:.0f} characters",
    ]


def test_every_record_of_a_run_is_cited_by_a_page():
    benchmarks, cards = ROOT / "benchmarks", ROOT / "engine" / "mercury_engine" / "assets"
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), benchmarks / "README.md", *cards.rglob("*.md"))
    cited = {name for page in pages for name in re.findall(r"[\w.*-]+\.(?:jsonl?|txt)", page.read_text("utf-8"))}
    records = [path.name for path in (benchmarks / "results").iterdir()]
    assert [name for name in records if not any(fnmatch(name, each) for each in cited)] == []


def test_tables_of_decisions_fit_on_a_screen():
    for page in (ROOT / "docs" / "decisions").glob("*.md"):
        rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("|")]
        assert [line for line in rows if len(re.sub(r"\]\([^)]*\)", "]", line)) > 120] == [], page.name
