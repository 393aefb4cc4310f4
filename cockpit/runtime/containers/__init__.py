"""Containers that one can come back to: the executor, and the shim that holds each of them."""
