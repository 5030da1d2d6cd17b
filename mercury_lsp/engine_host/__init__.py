"""The thread that owns an engine, and the engines that the connections of a process share."""
