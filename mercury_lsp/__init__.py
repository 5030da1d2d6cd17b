"""Speaks the Language Server Protocol; asks the engine for fills."""
