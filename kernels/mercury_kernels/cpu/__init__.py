"""A decoder's layers over few rows on a CPU, in C; the torch twin is `mercury_engine.models.network.Network.run`."""
