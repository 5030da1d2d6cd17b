"""What an editor starts: passes its messages to the daemon, and outlives it. Imports neither torch nor pygls."""
