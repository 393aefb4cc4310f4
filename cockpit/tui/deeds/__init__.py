"""What the actions do."""
