"""What stands between editors and the daemon, and outlives it. Imports neither torch nor pygls."""
