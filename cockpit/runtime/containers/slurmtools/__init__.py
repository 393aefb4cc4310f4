"""Slurm's commands inside of a batch script's container. Copied there: standard library only, Python 3.8."""
