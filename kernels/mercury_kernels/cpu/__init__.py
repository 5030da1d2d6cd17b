"""A decoder's layers over few rows on a CPU, in C; the torch twin is in `tests/support/reference_layers.py`."""
