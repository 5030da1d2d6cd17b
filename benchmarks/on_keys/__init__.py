"""Parts of `benchmarks/keystrokes.py`: a script of keys, the server under a stopwatch, and its peers."""
