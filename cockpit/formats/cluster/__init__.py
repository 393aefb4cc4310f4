"""cluster.toml: its fields, read and written."""
