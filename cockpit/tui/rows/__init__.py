"""What each view lists, as the table wants it."""
