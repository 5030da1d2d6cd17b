"""Parts of `installation.py`."""
