"""Who comes first: priority by its factors, fair share, usage."""
