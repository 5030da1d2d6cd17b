"""Speaks the Language Server Protocol; asks the engine for fills."""

__all__ = ["version"]


def version() -> str:
    """The version of the installed package."""
    from importlib import metadata  # takes 30 ms, which --help and tests of parts need not pay

    return metadata.version("mercury-lsp")
