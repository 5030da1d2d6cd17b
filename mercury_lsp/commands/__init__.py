"""The commands of `mercury-lsp`, one module each."""
