"""What will be: the cluster's future as its own cycle would make it."""
