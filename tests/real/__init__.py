"""A package, so that the folder `kubernetes` in it is not taken for the client of that name."""
