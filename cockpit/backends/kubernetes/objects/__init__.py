"""Kubernetes' objects as structs of the fields that cockpit reads. Unknown fields are skipped while decoding.

All are trees, which never refer back to themselves: the garbage collector can skip them (`gc=False`). Hundreds of pods
that change each second would otherwise have it stop the screen.
"""
