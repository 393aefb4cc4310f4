"""Pure: values to cells, rows and sentences."""
