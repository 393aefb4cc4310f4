"""What people already have: other systems' ways to write a job, read and written."""
