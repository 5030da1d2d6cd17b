"""docs/protocol.md names every method, and its tests exist."""

import ast
import re
from pathlib import Path

import pytest
from lsprotocol import types

from mercury_lsp.server.requests.execute_command import COMMANDS
from mercury_lsp.server.routes import HANDLERS

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "protocol.md").read_text("utf-8")

FILES = {
    "S": "test_session.py",
    "W": "test_workspace.py",
    "A": "test_actions.py",
    "P": "test_completion.py",
    "C": "test_copilot.py",
    "M": "test_malformed.py",
    "T": "test_statistics.py",
    "R": "../relay/test_relay.py",
    "D": "test_denoising.py",
    "K": "test_clients.py",
    "G": "test_clients_ghost.py",
    "E": "test_clients_emacs.py",
    "U": "test_clients_popup.py",
    "N": "test_next_edits.py",
    "O": "test_other_files.py",
    "I": "test_diagnostics.py",
    "L": "test_larger_model.py",
    "B": "test_highlights.py",
    "H": "../relay/test_editors.py",
    "V": "test_notebooks.py",
}
BY_CLIENT = (types.TEXT_DOCUMENT_COMPLETION, types.TEXT_DOCUMENT_CODE_ACTION)
METHODS = [method for method in (*HANDLERS, *BY_CLIENT, *COMMANDS) if not method.startswith("test/")]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_line_that_names_a_test(method: str):
    lines = [line for line in PAGE.splitlines() if line.startswith(f"| `{method}` |")]
    assert len(lines) == 1 and "::test_" in lines[0]


@pytest.mark.parametrize("key", FILES)
def test_every_test_that_the_page_names_exists(key: str):
    tree = ast.parse((HERE / FILES[key]).read_text("utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    named = set(re.findall(rf"`{key}::(test_\w+)`", PAGE))
    assert named and named <= defined


def test_every_row_of_a_table_with_tests_names_one():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    column = None
    for row in rows:
        if "test" in row:
            column = row.index("test")
        elif column is not None and not set("".join(row)) <= {"-", " "}:
            assert "::test_" in row[column], row[0]
