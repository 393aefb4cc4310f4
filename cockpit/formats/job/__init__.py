"""Job files: their fields, how they are read and written, their schema."""
