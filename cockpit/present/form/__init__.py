"""A job as a form, and what stands beside it."""
