"""What specs and catalogue entries must obey beyond their types: every error at once, in words."""
