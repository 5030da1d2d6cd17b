"""Source text to learn from: where it comes from, what is kept, what is held out."""
