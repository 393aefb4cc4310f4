"""Converts slurmrestd's JSON to records, and changes to requests of slurmrestd."""
