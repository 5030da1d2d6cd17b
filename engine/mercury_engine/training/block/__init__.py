"""Train a block drafter: one layer that denoises the slots behind the reader's next token."""
