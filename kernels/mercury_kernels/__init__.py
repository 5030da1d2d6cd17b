"""The operations of Mercury's network; knows nothing of models or of text."""
