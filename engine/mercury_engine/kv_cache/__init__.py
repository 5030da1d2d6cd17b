"""Keys and values of context that was read before: the cache and how blocks are prefilled for it."""
