"""Names in shell scripts: functions, and variables, which are the script's unless a function declares them."""

from collections.abc import Sequence

from tree_sitter import Node

_DECLARING = ("local", "declare", "typeset")
_NAMING = ("read", "unset", "export", "mapfile", "readarray", "getopts")
"""Commands whose words are names of variables."""


def shell_role(path: Sequence[Node]) -> str | None:
    """What the path's leaf is called as: `name` for a variable, `command` for a function; None for other words."""
    leaf, parent = path[-1], path[-2] if len(path) > 1 else path[-1]
    if leaf.type == "variable_name":
        return "name"
    if leaf.type != "word":
        return None
    if parent.type in ("command_name", "function_definition"):
        return "command"
    return "name" if parent.type == "command" and _first_word(parent) in _NAMING else None


def is_bound_in_shell(path: Sequence[Node]) -> bool:
    """Whether a variable is declared for its function, or assigned outside of all functions."""
    around = [node for node in path[:-1] if node.type in ("declaration_command", "function_definition")]
    if not any(node.type == "function_definition" for node in around):
        return path[-2].type in ("variable_assignment", "for_statement", "declaration_command")
    last = around[-1]
    is_value = path[-2].type not in ("variable_assignment", "declaration_command")
    return last.type == "declaration_command" and _first_word(last) in _DECLARING and not is_value


def _first_word(node: Node) -> str:
    return ((node.children[0].text if node.children else None) or b"").decode("utf-8", "replace")
