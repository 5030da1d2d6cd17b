"""Prompt formats of open edit models: data, one file a family, and the code that renders them."""
