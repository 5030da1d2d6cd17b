"""Parts of `benchmarks/diffusion.py`."""
