"""Teach the writer to draft: windows, canvases, loss, measure and run."""
