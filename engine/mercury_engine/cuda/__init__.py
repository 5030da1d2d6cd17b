"""The denoising loop of a deciding writer, kept on an NVIDIA GPU."""
