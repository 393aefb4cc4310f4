"""Who may start before jobs that stand higher in the queue, and delay none of them."""
