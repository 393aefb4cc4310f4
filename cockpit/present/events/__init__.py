"""Sentences for all events."""
