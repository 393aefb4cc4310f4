"""Requests to an API server: the user's kubeconfig, single requests, whole lists, and watches."""
