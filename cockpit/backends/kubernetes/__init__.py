"""The backend of Kubernetes clusters: jobs, queues, nodes and reasons from the objects of an API server."""
