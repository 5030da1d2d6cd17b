"""Real edits: commits of permissively licensed projects, ordered into steps."""
