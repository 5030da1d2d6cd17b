"""A document as the client has it: its text, versions, syntax tree and language, and the secrets to redact from it."""
