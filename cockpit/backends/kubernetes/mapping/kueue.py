"""Why Kueue does not admit a job, out of the conditions that it writes at the job's workload.

Kueue names the reason since 0.16; before, every reason is `Pending`, and its sentence says which.
"""

from __future__ import annotations

import re
from functools import lru_cache

from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
from cockpit.backends.kubernetes.objects.meta import Condition, condition, millis
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import FlavorObstacle, FlavorTried, QueueWaits

KUEUE = "Kueue"
NEVER = frozenset({"ExceedsMaxQuota", "NoMatchingFlavor"})
"""Reasons that only a change of the job or of its queue removes."""
_NOT_TAKEN = "namespace doesn't match ClusterQueue selector"
"""What Kueue says of a job whose namespace its cluster queue does not select."""
_LONGEST = 400
_PREEMPTED = re.compile(r"Pending the preemption of (\d{1,6}) workload")
_NAME = r"[^\s,;]+"
_TRIED = re.compile(
    rf"""
      insufficient\ quota\ for\ (?P<large>{_NAME})\ in\ flavor\ (?P<large_flavor>{_NAME}),\ [^;]*?
        maximum\ capacity\ \((?:[^)>]*>\ )?(?P<most>[^)]*)\)
    | insufficient\ unused\ quota\ (?:in\ cohort\ )?for\ (?P<short>{_NAME})\ in\ flavor\ (?P<short_flavor>{_NAME})
        (?:,\ (?P<missing>{_NAME})\ more\ needed)?
    | borrowing\ limit\ for\ (?P<limited>{_NAME})\ in\ flavor\ (?P<limited_flavor>{_NAME})\ exceeded
    | untolerated\ taint\ (?P<taint>.+?)\ in\ flavor\ (?P<tainted>{_NAME})
    | flavor\ (?P<unmatched>{_NAME})\ doesn't\ match\ node\ affinity
    | resource\ (?P<undeclared>{_NAME})\ unavailable\ in\ ClusterQueue
    """,
    re.VERBOSE,
)


def admission_reason(workload: KueueWorkload) -> QueueWaits | None:
    """Return why the workload is not admitted; None: it is, or has ended."""
    if workload.is_admitted or workload.is_finished:
        return None
    queue, conditions = workload.spec.queue_name, workload.status.conditions
    quota, evicted = condition(conditions, "QuotaReserved"), condition(conditions, "Evicted")
    if not workload.spec.active:
        return _stopped(queue, evicted)
    if quota is not None and quota.is_true:
        return QueueWaits(KUEUE, queue, "AdmissionChecks", _checks(workload))
    until = _put_back_until(workload)
    # Evicted says why it lost the quota that it had, until it is queued again.
    if evicted is not None and (until is not None or (quota is None and evicted.is_true)):
        return QueueWaits(KUEUE, queue, evicted.reason, evicted.message[:_LONGEST], until=until)
    return _of_message(queue, quota.reason, quota.message) if quota is not None else QueueWaits(KUEUE, queue)


def is_taken(workload: KueueWorkload) -> bool:
    """Return whether its queue looks at its quotas, as far as Kueue has said: it passes over a job of which the
    namespace is not among those that the queue takes, also in a strict queue."""
    quota = condition(workload.status.conditions, "QuotaReserved")
    return quota is None or quota.is_true or _NOT_TAKEN not in quota.message


def _stopped(queue: str, evicted: Condition | None) -> QueueWaits:
    """Return what stopped the workload. If it ran before, that is the reason of its eviction: too many attempts, or too
    long a run."""
    if evicted is not None and evicted.reason.startswith("Deactivated"):
        return QueueWaits(KUEUE, queue, evicted.reason, evicted.message[:_LONGEST])
    return QueueWaits(KUEUE, queue, "Inactive", "its admission was stopped (spec.active is false)")


def _put_back_until(workload: KueueWorkload) -> Millis | None:
    state, requeued = workload.status.requeue_state, condition(workload.status.conditions, "Requeued")
    waits = requeued is not None and not requeued.is_true
    return millis(state.requeue_at) if state is not None and waits else None


def _checks(workload: KueueWorkload) -> str:
    """Return which admission checks are not ready."""
    left = [each for each in workload.status.admission_checks or () if each.state != "Ready"]
    if not left:
        return "it has its quota, and waits for admission checks"
    words = (f"{each.name} is {each.state or 'Pending'}{f': {each.message}' if each.message else ''}" for each in left)
    return f"it has its quota, and waits for {'; '.join(words)}"[:_LONGEST]


@lru_cache(maxsize=4096)
def _of_message(queue: str, reason: str, message: str) -> QueueWaits:
    """Return Kueue's sentence with what it says of each flavor. Cached, since many jobs wait for the same."""
    flavors = tried_flavors(message)
    code = reason
    if reason == "Pending" and flavors:
        code = _code_of(flavors)
    never = code in NEVER or _NOT_TAKEN in message
    return QueueWaits(
        KUEUE, queue, code, message[:_LONGEST], never=never, flavors=flavors, ending=preempted_for(message)
    )


def preempted_for(message: str) -> int:
    """Return how many jobs Kueue's sentence says it has preempted for a job; 0: none."""
    said = _PREEMPTED.search(message)
    return int(said[1]) if said is not None else 0


def tried_flavors(message: str) -> tuple[FlavorTried, ...]:
    """Return the flavors that Kueue's sentence names, with what keeps the job from each."""
    return tuple(dict.fromkeys(_tried(match) for match in _TRIED.finditer(message)))


def _tried(match: re.Match[str]) -> FlavorTried:
    found = {name: text or "" for name, text in match.groupdict().items()}
    if found["large"]:
        most = found["most"].rpartition(" > ")[2]
        return FlavorTried(found["large_flavor"], FlavorObstacle.TOO_LARGE, found["large"], most=most)
    if found["short"]:
        return FlavorTried(found["short_flavor"], FlavorObstacle.SHORT, found["short"], missing=found["missing"])
    if found["limited"]:
        return FlavorTried(found["limited_flavor"], FlavorObstacle.SHORT, found["limited"], about="borrowing limit")
    if found["undeclared"]:
        return FlavorTried("", FlavorObstacle.NO_QUOTA, found["undeclared"])
    if found["tainted"]:
        return FlavorTried(found["tainted"], FlavorObstacle.EXCLUDED, about=f"the taint {found['taint']}")
    return FlavorTried(found["unmatched"], FlavorObstacle.EXCLUDED, about="other node labels")


def _code_of(flavors: tuple[FlavorTried, ...]) -> str:
    """Return the reason that Kueue names since 0.16. One flavor for which waiting helps is enough."""
    obstacles = {each.obstacle for each in flavors}
    if FlavorObstacle.NO_QUOTA in obstacles:
        return "NoMatchingFlavor"
    if FlavorObstacle.SHORT in obstacles:
        return "WaitingForQuota"
    return "ExceedsMaxQuota" if FlavorObstacle.TOO_LARGE in obstacles else "NoMatchingFlavor"
