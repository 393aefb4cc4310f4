"""A fleet's host over the hosts of its members: orders go down, reports come up, all in one process."""
