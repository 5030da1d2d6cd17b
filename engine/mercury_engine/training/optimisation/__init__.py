"""Losses, batches, optimisers, and the runs that use them."""
