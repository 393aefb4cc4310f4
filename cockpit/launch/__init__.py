"""Pure: job, placement and rank to environment, files and command."""
