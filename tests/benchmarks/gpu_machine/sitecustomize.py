"""Hides the packages of the language server, which a borrowed GPU machine does not have."""

import sys

HIDDEN = ("pygls", "lsprotocol", "tree_sitter", "gguf", "platformdirs", "detect_secrets", "pathspec")


class Hidden:
    """Finds none of them."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].startswith(HIDDEN):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hidden())
