"""Mercury's engine: fills gaps in source text with a language model, causal (the default) or masked diffusion.

Importing it imports nothing else: processes that only pass messages to a server use some of its modules.
"""
