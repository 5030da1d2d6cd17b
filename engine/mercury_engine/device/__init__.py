"""Networks that torch runs: on a GPU in steps of fixed shape, captured as graphs."""
