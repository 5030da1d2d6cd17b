"""Train adapters: low-rank changes for the rows behind a context that the untouched model has read and cached."""
