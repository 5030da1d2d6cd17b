"""A corpus of planted secrets, none of them real, and where they reach."""
