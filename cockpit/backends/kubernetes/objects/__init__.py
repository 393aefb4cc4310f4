"""Kubernetes' objects as structs of the fields that cockpit reads. Unknown fields are skipped while decoding."""
