"""What one training step sees: gaps, passages and snippets drawn from files."""
