"""Predictions: the cluster's future, simulated with its own scheduling cycle."""
