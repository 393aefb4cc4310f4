"""The journal in SQLite."""
