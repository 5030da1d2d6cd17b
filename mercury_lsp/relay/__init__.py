"""The relay between an editor and the daemon, which outlives the daemon. Imports neither torch nor asyncio."""
