"""Detects the accelerators of this machine. Each vendor has a module: a pure parser and a probe that uses it."""
