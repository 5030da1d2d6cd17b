"""The operations of Mercury's network: kernels and their torch twins, without models or text."""
