"""Chooses a cluster by its name or address, and opens its backend."""
