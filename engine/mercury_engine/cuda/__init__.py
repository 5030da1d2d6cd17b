"""The decoders' loops on an NVIDIA GPU: contexts in pages, and steps without the host."""
