"""The submit form of a job, and the panel beside it."""
