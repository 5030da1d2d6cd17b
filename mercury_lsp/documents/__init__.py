"""A document as the client has it: text, versions, syntax tree, language, and what is redacted from it."""
