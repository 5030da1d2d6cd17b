"""Train adapters: low-rank changes for the rows after a context that the untouched model has read and cached."""
