"""What screens are made of: drawn line by line from spans with roles."""
