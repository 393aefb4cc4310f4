"""Backfill: which jobs may start before jobs that are higher in the queue, without delaying them."""
