"""The models on this machine: adding, listing, measuring and removing them. Only commands import this."""
