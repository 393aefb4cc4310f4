"""What `doctor` looks at: one module per subject, each a few functions from `Surroundings` to findings."""
