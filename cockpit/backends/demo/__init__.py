"""A living cluster on a virtual clock: the engine's own host over a fixture. Nothing real is run, read or changed."""
