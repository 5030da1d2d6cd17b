"""Train: losses, batches, optimisers, and the runs that use them."""
