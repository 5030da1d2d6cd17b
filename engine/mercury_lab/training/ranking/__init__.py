"""Teach the head that ranks candidate places, and measure it on repositories that it has not seen."""
