"""What a fleet decides beside its cycle: room by totals, and what members keep for it."""
