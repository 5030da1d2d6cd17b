"""Masked diffusion models: a canvas of masks, unmasked in any order over a few denoising steps."""
