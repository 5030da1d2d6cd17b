"""How good a model's fills are, on repositories that no training saw."""
