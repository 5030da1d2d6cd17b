"""The dialect of clients that were made for Copilot's language server; see docs/protocol.md for who sends what."""
