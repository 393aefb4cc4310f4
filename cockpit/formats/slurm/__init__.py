"""Slurm's own files and words: slurm.conf, slurmSpec, sacctmgr's settings."""
