"""Parts of `connections.py`."""
