"""The checks of `doctor`: one module per subject, each with functions that turn `Surroundings` into findings."""
