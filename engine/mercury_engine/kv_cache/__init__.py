"""Keys and values of context that was read before."""
