"""Run a fleet: one host that schedules over the hosts of its member clusters, all in one process."""
