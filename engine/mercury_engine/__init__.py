"""Mercury's engine: a diffusion language model that fills gaps in source text.

Importing it imports nothing else: processes that only pass messages to a server use some of its modules.
"""
