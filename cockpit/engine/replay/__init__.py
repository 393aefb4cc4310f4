"""The past once more, on virtual time."""
