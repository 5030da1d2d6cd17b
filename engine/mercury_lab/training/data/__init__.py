"""Collect the training text: its sources, which files are kept, and which are held out."""
