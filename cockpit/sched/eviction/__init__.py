"""Eviction: which running jobs are ended, suspended or shrunk for a waiting job, and by which rule."""
