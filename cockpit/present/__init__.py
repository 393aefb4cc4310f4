"""Pure functions that turn values into cells, rows and sentences."""
