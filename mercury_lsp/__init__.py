"""The language server: speaks LSP, and asks the engine for fills."""

__all__ = ["__version__"]

__version__ = "0.1.0"
"""The package's version too: the build reads it here. Reading it from the installed metadata took 30 ms and 5 MB."""
