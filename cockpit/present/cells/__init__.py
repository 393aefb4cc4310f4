"""The columns of each view as cells with roles."""
