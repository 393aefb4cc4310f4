"""A package, so that the cluster that its tests share ends with the last of them."""
