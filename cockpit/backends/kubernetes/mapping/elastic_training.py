"""Which part of Alibaba's elastic training a cluster lacks.

TrainingJobs run with the operator alone. What tells their workers of a reclaim, and suspends jobs that lack workers, is
the elastic job supervisor, which the component ack-arena installs from version 0.13.1 on.
"""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.backends.kubernetes.objects.pod import Pod

SUPERVISOR_NAMESPACE = "arena-system"
_SUPERVISOR = "elastic-job-supervisor"
_CONSEQUENCE = "elastic jobs are not warned before spot instances are reclaimed"


def missing_supervisor(pods: Iterable[Pod]) -> str:
    """Return what is wrong with the elastic job supervisor; empty: it runs. `pods`: at least those of its namespace."""
    states = [
        pod.now.phase
        for pod in pods
        if pod.metadata.namespace == SUPERVISOR_NAMESPACE and pod.metadata.label("app") == _SUPERVISOR
    ]
    if "Running" in states:
        return ""
    if not states:
        return f"{_SUPERVISOR} has no pods in {SUPERVISOR_NAMESPACE}, so that {_CONSEQUENCE}; ack-arena 0.13.1 has it."
    return f"{_SUPERVISOR} does not run in {SUPERVISOR_NAMESPACE} ({states[0]}), so that {_CONSEQUENCE}."
