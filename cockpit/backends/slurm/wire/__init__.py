"""Ways to Slurm's commands: on this machine, over SSH, recorded ones. Bytes and argument vectors only."""
