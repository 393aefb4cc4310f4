"""Room from running jobs: which of them give way, by what right, and for whom."""
