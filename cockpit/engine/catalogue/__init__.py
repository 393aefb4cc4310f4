"""The catalogue as people change it, and what its names mean in jobs."""
