"""Finds secrets in text, line by line and across lines."""
