"""The language server: speaks LSP, and asks the engine for fills."""

__all__ = ["version"]


def version() -> str:
    """The installed package's version."""
    from importlib import metadata  # takes 30 ms, which --help need not pay

    return metadata.version("mercury-lsp")
