"""Evaluation of what users see: `python -m mercury_lsp.evaluation {situations,edits}`.

The engine's own suites (`mercury_engine.evaluation`) judge fills; this package judges what is left of them after the
server's rules.
"""
