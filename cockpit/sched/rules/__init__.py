"""The cluster's rules: limits and what is in use of them, quotas, partitions, who stands above whom."""
