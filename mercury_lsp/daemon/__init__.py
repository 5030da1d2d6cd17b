"""One process that serves many editors with one model."""
