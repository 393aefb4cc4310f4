"""The panel about what is under the cursor, view by view; a job's is `job.answer`."""
