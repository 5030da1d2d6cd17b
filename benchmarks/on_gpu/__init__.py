"""Parts of benchmarks/gpu.py: shapes, clocks, kernels, fills, baselines."""
