"""Sentences for what Kubernetes reports of a job's pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cockpit.model.pod_reasons import (
    GangIncomplete,
    Gated,
    MemberState,
    MissingMembers,
    NodesExcluded,
    Obstacle,
    PodReason,
    PodsNotCreated,
    PodsStarting,
    QueueWaits,
    Unschedulable,
)
from cockpit.model.pod_reasons import StartStep as Step
from cockpit.present import units
from cockpit.present.phrases import listed
from cockpit.present.safe import safe

_OBSTACLES: Final = {
    Obstacle.RESOURCE: ("has too little free {}", "have too little free {}"),
    Obstacle.TAINT: ("has the taint {}", "have the taint {}"),
    Obstacle.SELECTOR: ("does not match the node selector", "do not match the node selector"),
    Obstacle.CORDONED: ("is cordoned", "are cordoned"),
    Obstacle.NOT_READY: ("is not ready", "are not ready"),
    Obstacle.ANTI_AFFINITY: ("is excluded by rules about other pods", "are excluded by rules about other pods"),
    Obstacle.VOLUME: ("cannot use its volume", "cannot use its volume"),
    Obstacle.PORTS: ("has its host port in use", "have its host port in use"),
    Obstacle.PODS: ("has as many pods as it may", "have as many pods as they may"),
    Obstacle.OTHER: ("({})", "({})"),
}
_STEPS: Final = {
    Step.IMAGE: "cannot pull the image",
    Step.VOLUME: "waits for a volume",
    Step.INIT: "runs its init container",
    Step.CONFIG: "lacks a Secret or ConfigMap",
    Step.CONTAINER: "is being started",
    Step.RESTART: "failed and is restarted after a pause",
}
_STEPS_OF_SEVERAL: Final = {
    Step.IMAGE: "cannot pull the image",
    Step.VOLUME: "wait for a volume",
    Step.INIT: "run their init containers",
    Step.CONFIG: "lack a Secret or ConfigMap",
    Step.CONTAINER: "are being started",
    Step.RESTART: "failed and are restarted after a pause",
}
_PLAIN: Final = frozenset({"", "ContainerCreating", "PodInitializing", "Waiting"})
"""Words that say no more than the sentence."""


def pod_clauses(reason: PodReason) -> Iterator[str]:
    """Yield what the job waits for, then the particulars."""
    match reason:
        case Unschedulable():
            yield from _unschedulable(reason)
        case PodsNotCreated():
            yield f"waits for the controller of its {safe(reason.kind)} to create its pods"
            if reason.message:
                yield safe(reason.message)
        case QueueWaits():
            yield from _queue_waits(reason)
        case Gated():
            yield f"scheduling gates keep it back: {listed([safe(each) for each in reason.gates])}"
        case PodsStarting():
            yield from _starting(reason)
        case GangIncomplete():
            yield from _gang(reason)


_ADMISSION: Final = {
    "": "waits for {} to look at it in queue {}",
    "Pending": "waits for quota of {} in queue {}",
    "Preempted": "was preempted by {} in queue {}, and waits again",
    "PodsReadyTimeout": "was put back by {} into queue {}, since its pods were not ready in time",
    "Inactive": "{} does not look at it in queue {}",
    "AdmissionChecks": "waits for {} in queue {}",
    "Enqueued": "waits for {} to dequeue it from queue {}",
    "Reserved": "has its quota of {} in queue {}, and waits for admission checks",
    "TimeoutBackoff": "was put back by {} into queue {}, since it did not start in time",
    "Closed": "{} lets no job out of queue {}, which is closed",
    "InQueue": "waits for its turn in {}'s queue {}",
    "NoQueue": "{} has no queue {}",
    "Quota": "does not fit into {} {}",
}


def _queue_waits(reason: QueueWaits) -> Iterator[str]:
    words = _ADMISSION.get(reason.code, f"is not admitted by {{}} in queue {{}} ({safe(reason.code)})")
    yield words.format(safe(reason.manager), safe(reason.queue) or "-")
    if reason.message:
        yield safe(reason.message)


def _unschedulable(reason: Unschedulable) -> Iterator[str]:
    waiting = "its pod" if reason.wanted == 1 else f"{reason.pods} of its {reason.wanted} pods"
    if reason.nodes is None:
        yield f"no node for {waiting}"
        yield safe(reason.message)
        return
    yield f"none of {units.counted(reason.nodes, 'node')} can take {waiting}"
    if reason.excluded:
        yield ", ".join(map(_excluded, reason.excluded))


def _excluded(each: NodesExcluded) -> str:
    one, several = _OBSTACLES[each.obstacle]
    # The scheduler gives no count for causes that concern the pod and no node.
    count = f"{each.nodes} " if each.nodes else ""
    if each.obstacle is Obstacle.TAINT and not each.about:
        return f"{count}{'has' if each.nodes == 1 else 'have'} taints that it does not tolerate"
    return f"{count}{(one if each.nodes == 1 else several).format(safe(each.about))}"


def _starting(reason: PodsStarting) -> Iterator[str]:
    words = _STEPS if reason.pods == 1 else _STEPS_OF_SEVERAL
    code = f" ({safe(reason.code)})" if reason.code not in _PLAIN and reason.step is not Step.INIT else ""
    yield f"{units.counted(reason.pods, 'pod')} {words[reason.step]}{code}"
    if reason.message:
        yield safe(reason.message)


_MEMBERS: Final = {
    MemberState.NOT_CREATED: ("is not created", "are not created"),
    MemberState.NO_NODE: ("has no node", "have no node"),
    MemberState.WOULD_FIT: ("would fit", "would fit"),
    MemberState.NOT_CONSIDERED: ("waits for the scheduler", "wait for the scheduler"),
    MemberState.GATED: ("is kept back", "are kept back"),
    MemberState.STARTING: ("has a node and does not run", "have a node and do not run"),
}


def _gang(reason: GangIncomplete) -> Iterator[str]:
    pods, have = units.counted(reason.least, "pod"), "has" if reason.ready == 1 else "have"
    gang = f" of gang {safe(reason.gang)}" if reason.gang else ""
    yield f"starts with {pods}{gang} or not at all; {reason.ready} of them {have} a node"
    yield from map(_missing, reason.missing)
    if reason.message:
        yield safe(reason.message)


def _missing(members: MissingMembers) -> str:
    """Return the members that lack the same, such as `2 have no node (w-2 and w-3): 20 have too little free cpu`."""
    one, several = _MEMBERS[members.state]
    named = listed((*members.names, *(["others"] if members.names and members.count > len(members.names) else ())))
    which = f" ({named or safe(members.role)})" if named or members.role else ""
    why = _why_missing(members.reason)
    return f"{members.count} {one if members.count == 1 else several}{which}{f': {why}' if why else ''}"


def _why_missing(reason: Unschedulable | Gated | PodsStarting | None) -> str:
    match reason:
        case Unschedulable():
            nodes = f"of {units.counted(reason.nodes, 'node')} " if reason.nodes is not None else ""
            return f"{nodes}{', '.join(map(_excluded, reason.excluded))}" if reason.excluded else safe(reason.message)
        case Gated():
            return listed(reason.gates)
        case PodsStarting():
            return ", ".join(_starting(reason))
        case None:
            return ""
