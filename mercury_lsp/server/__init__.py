"""The server for one client: its messages, capabilities, settings, documents and status."""
