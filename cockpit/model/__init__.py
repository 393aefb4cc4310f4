"""Frozen values and ids that every room speaks in. Standard library and msgspec only."""
