"""Measure the quality of a model's fills on repositories that training never saw."""
