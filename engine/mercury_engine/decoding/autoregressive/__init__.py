"""Causal models: drafts by n-gram lookup, verified and accepted several tokens a pass (speculative decoding)."""
