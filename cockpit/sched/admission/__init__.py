"""Admission of whole jobs by quotas, as Kueue's queues do it: lent quotas, verdicts and predicted admissions."""
