"""Slurm clusters: `wire` runs its commands, `mapping` reads what they print, `backend` puts both together."""
