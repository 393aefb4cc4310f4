"""The cluster's rules: limits and what is in use of them, quotas, partitions, and the precedence of preemption."""
