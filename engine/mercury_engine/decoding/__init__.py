"""How models write: one protocol, two decoders, and what both of them need."""
