"""Rules about plain text that the engine and the server share; nothing here imports torch."""
