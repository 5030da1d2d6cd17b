"""Text to tokens: the tokenizer, and which blocks around the cursor the model reads."""
