"""One client's session: its messages, capabilities, settings and status."""
