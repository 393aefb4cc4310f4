"""The embedded engine, over its socket."""
