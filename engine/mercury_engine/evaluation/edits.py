"""Judge next edits: `python -m mercury_engine.evaluation edits`. It runs the server's suite (see `served`)."""

from mercury_engine.evaluation.served import run_suite


def main(argv: list[str]) -> int:
    """Run the suite; returns its exit status."""
    return run_suite("edits", argv)
