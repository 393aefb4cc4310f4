"""Applies each kind of event to the state."""
