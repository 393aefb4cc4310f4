"""Compares what cockpit says about waiting jobs with what kube-scheduler then does, in situations made up by a seed."""
