"""Scripted mode: verbs, output, exit codes."""
