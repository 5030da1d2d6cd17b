"""How messages reach the server: framing, standard input, standard streams."""
