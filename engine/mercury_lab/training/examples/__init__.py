"""Sample the examples of a training step from files: gaps, passages and snippets."""
