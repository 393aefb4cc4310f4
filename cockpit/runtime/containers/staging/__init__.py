"""Copies on this machine of what jobs need fast: made once, shared, kept for a while, and then removed."""
