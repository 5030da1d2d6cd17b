"""Turning a causal model into one that denoises gaps with full attention."""
