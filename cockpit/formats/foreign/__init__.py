"""Reads and writes jobs in the forms of other systems: Slurm, arena, gcloud, Kubernetes, Vertex AI."""
