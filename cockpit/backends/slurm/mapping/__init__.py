"""What Slurm prints, as the model's values, and the commands that act. Pure."""
