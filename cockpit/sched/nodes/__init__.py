"""What nodes are and have free."""
