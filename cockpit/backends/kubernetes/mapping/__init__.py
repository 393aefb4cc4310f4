"""Kubernetes' objects as cockpit's jobs, nodes, queues and reasons."""
