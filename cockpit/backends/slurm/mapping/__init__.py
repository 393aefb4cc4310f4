"""Converts Slurm's output into values of the model, and requests into Slurm's commands. Pure."""
