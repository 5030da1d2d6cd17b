"""From a context to what is shown: drafts, coalescing, typing through, postprocessing, next edits."""
