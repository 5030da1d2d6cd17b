"""The HTTP API: the dialects of editor clients, answered by the engines that language servers use."""
