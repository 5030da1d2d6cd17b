"""Evaluation of what users see: the suites `situations` and `edits` type into the server as an editor does.

The other suites (`mercury_lab.evaluation`) judge fills; these judge what is left of them after the server's rules.
"""
