"""GGUF files as models: read in place, not converted."""
