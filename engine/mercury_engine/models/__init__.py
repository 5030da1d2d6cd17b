"""The network, its implementations, and the weights they load."""
