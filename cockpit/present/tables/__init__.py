"""The tables: which columns jobs, nodes, holds and events have."""
