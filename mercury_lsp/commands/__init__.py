"""What `mercury-lsp` can be told to do, one module each."""
