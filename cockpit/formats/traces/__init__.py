"""Logs and traces of real machines."""
