"""Nodes that fail, are checked, leave service and come back."""
