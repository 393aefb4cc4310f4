"""Which accelerators this machine has: one module per vendor, each a pure parser and a probe over it."""
