"""Priority: the multifactor formula, fair share, usage, and the order of the queue."""
