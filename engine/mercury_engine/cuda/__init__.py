"""The denoising loop of a deciding writer, run on an NVIDIA GPU without the host."""
