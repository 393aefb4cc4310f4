"""slurmrestd's JSON in the words of Slurm's commands, so that all else reads one language; and acts as requests."""
