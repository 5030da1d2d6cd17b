"""Model folders: starting weights in, trained weights out."""
