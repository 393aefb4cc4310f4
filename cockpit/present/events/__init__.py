"""A sentence for every event."""
