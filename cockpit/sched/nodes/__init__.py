"""Nodes: their classes, what is free on them, and which jobs may use them."""
