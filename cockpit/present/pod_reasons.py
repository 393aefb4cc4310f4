"""Sentences for what Kubernetes reports of a job's pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Final

from cockpit.model.fleet_placement import FleetWaits
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import (
    ClaimTrouble,
    ClaimWaits,
    FlavorObstacle,
    FlavorTried,
    GangIncomplete,
    Gated,
    MembersPlaced,
    MemberState,
    MembersToPlace,
    MissingMembers,
    NodesExcluded,
    NodesLookedAt,
    Obstacle,
    PodReason,
    PodsNotCreated,
    PodsStarting,
    PullPolicy,
    QueueWaits,
    QuotaBorrower,
    QuotaInUse,
    QuotaUse,
    Unschedulable,
)
from cockpit.model.pod_reasons import StartStep as Step
from cockpit.present import units
from cockpit.present.fleet_placement import fleet_wording
from cockpit.present.moments import clock
from cockpit.present.phrases import Wording, listed, wording
from cockpit.present.references import job_shown
from cockpit.present.safe import safe

_OBSTACLES: Final = {
    Obstacle.RESOURCE: ("has too little free {}", "have too little free {}"),
    Obstacle.TAINT: ("has the taint {}", "have the taint {}"),
    Obstacle.SELECTOR: ("does not match the node selector", "do not match the node selector"),
    Obstacle.CORDONED: ("is cordoned", "are cordoned"),
    Obstacle.NOT_READY: ("is not ready", "are not ready"),
    Obstacle.AFFINITY: ("does not match the node affinity", "do not match the node affinity"),
    Obstacle.SPREAD: ("would spread the pods too unevenly", "would spread the pods too unevenly"),
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


def pod_wording(reason: PodReason, now: Millis, zone: tzinfo | None) -> Wording:  # noqa: PLR0911 - one for each reason
    """Return what the job waits for, then the particulars. `zone` None: this machine's."""
    match reason:
        case Unschedulable():
            return wording(*_unschedulable(reason), *_by_nodes(reason, now, zone), brief=_unschedulable_briefly(reason))
        case PodsNotCreated():
            waits = f"waits for the controller of its {safe(reason.kind)} to create its pods"
            # The controller's sentence has the same figures, written closely.
            message = (safe(reason.message),) if reason.message and not reason.quotas else ()
            brief = f"the quota {safe(reason.quotas[0].quota)} is used up" if reason.quotas else "waits for its pods"
            return wording(waits, *message, *map(_quota, reason.quotas), brief=brief)
        case QueueWaits():
            return _queue_waits(reason, now, zone)
        case Gated():
            gates = listed([safe(each) for each in reason.gates])
            one = f"kept back by the gate {gates}"
            brief = one if len(reason.gates) == 1 else f"kept back by {len(reason.gates)} scheduling gates"
            return wording(f"scheduling gates keep it back: {gates}", brief=brief)
        case PodsStarting():
            steps = _STEPS if reason.pods == 1 else _STEPS_OF_SEVERAL
            return wording(*_starting(reason), brief=f"{units.counted(reason.pods, 'pod')} {steps[reason.step]}")
        case GangIncomplete():
            pods = units.counted(reason.least, "pod")
            return wording(
                *_gang(reason), brief=f"{reason.ready} of the {pods} of its gang {_have(reason.ready)} a node"
            )
        case FleetWaits():
            return fleet_wording(reason)


_ADMISSION: Final = {
    "": "waits for {} in queue {}",
    "Pending": "waits for quota of {} in queue {}",
    "WaitingForQuota": "waits for quota of {} in queue {}",
    "ExceedsMaxQuota": "asks for more than {} can ever admit in queue {}",
    "NoMatchingFlavor": "{} has no quota for nodes of its kind in queue {}",
    "WaitingForPreemptedWorkloads": "waits for {} to preempt other jobs in queue {}",
    "TopologyPlacementFailed": "waits for {} to find nodes close enough together in queue {}",
    "WaitingForPodsReady": "waits for {} until the pods of jobs before it in queue {} are ready",
    "PendingEvaluation": "waits for {} to look at it again in queue {}",
    "Suspended": "{} admits nothing from queue {}, which is stopped",
    "Misconfigured": "{} cannot use queue {}",
    "Inadmissible": "{} cannot admit it from queue {}",
    "Preempted": "was preempted by {} in queue {}, and waits again",
    "PodsReadyTimeout": "was put back by {} into queue {}, since its pods were not ready in time",
    "ClusterQueueStopped": "was stopped by {} with its cluster queue, in queue {}",
    "LocalQueueStopped": "was stopped by {} with queue {}",
    "AdmissionCheck": "was put back by {} into queue {} by an admission check",
    "NodeFailures": "was put back by {} into queue {}, since its nodes failed",
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

_ADMISSION_BRIEFLY: Final = {
    "ExceedsMaxQuota": "asks for more than queue {1} can ever use",
    "NoMatchingFlavor": "queue {1} has no quota for nodes of its kind",
    "WaitingForPreemptedWorkloads": "waits for {0} to preempt other jobs",
    "TopologyPlacementFailed": "waits for nodes close enough together",
    "WaitingForPodsReady": "waits for pods of jobs before it to be ready",
    "PendingEvaluation": "waits for {0} to look at it again",
    "Suspended": "queue {1} is stopped",
    "Preempted": "was preempted by {0}, and waits again",
    "PodsReadyTimeout": "its pods were not ready in time; waits again",
    "ClusterQueueStopped": "its cluster queue is stopped",
    "LocalQueueStopped": "queue {1} is stopped",
    "AdmissionCheck": "was put back by an admission check",
    "NodeFailures": "its nodes failed; waits again",
    "Reserved": "has its quota, and waits for admission checks",
    "TimeoutBackoff": "did not start in time; waits again",
    "Closed": "queue {1} is closed",
    "NoQueue": "there is no queue {1}",
}
"""Short clauses by the same codes, where the sentence is too long for a list; `{0}` is the manager, `{1}` the queue."""


def _queue_waits(reason: QueueWaits, now: Millis, zone: tzinfo | None) -> Wording:
    names = safe(reason.manager), safe(reason.queue) or "-"
    words = _ADMISSION.get(reason.code)
    first = f"is not admitted by {{}} in queue {{}} ({safe(reason.code)})" if words is None else words
    brief = _ADMISSION_BRIEFLY.get(reason.code, words or "is not admitted by {} in queue {}").format(*names)
    if reason.ending:
        one = f"waits for {units.counted(reason.ending, 'preempted job')} to end"
        return wording(f"{one} in queue {names[1]}", *_of_admission(reason, now, zone), brief=one)
    # How much is missing says more than that the queue is full.
    if (short := next((each for each in reason.flavors if each.missing), None)) is not None:
        brief = f"needs {safe(short.missing)} more {safe(short.resource)} in queue {names[1]}"
    return wording(first.format(*names), *_of_admission(reason, now, zone), brief=brief)


def _of_admission(reason: QueueWaits, now: Millis, zone: tzinfo | None) -> Iterator[str]:
    if reason.jobs:
        more = reason.ending - len(reason.jobs)
        others = [f"{more} more"] if more > 0 else []
        which = listed([*(f"job {job_shown(job)}" for job in reason.jobs), *others])
        yield f"{safe(reason.manager)} preempts {which} for it"
    if reason.until is not None:
        yield f"not before {clock(reason.until, now, zone)}"
    # What the manager's sentence says of flavors is said in figures; other sentences stand as they are.
    yield from map(_flavor, reason.flavors)
    if reason.message and not reason.flavors:
        yield safe(reason.message)
    if reason.judged:
        yield f"found by cockpit from the quotas, as {safe(reason.manager)} says nothing of this job"
    yield from (_in_use(each) for each in reason.quotas)
    if reason.share is not None:
        yield f"queues with the smallest share of the cohort come first, and the share of its queue is {reason.share}"
    if reason.position_in_queue is not None:
        yield f"number {reason.position_in_queue} of queue {safe(reason.queue)}"


def _flavor(tried: FlavorTried) -> str:
    flavor, resource = safe(tried.flavor), safe(tried.resource)
    match tried.obstacle:
        case FlavorObstacle.SHORT if tried.missing:
            return f"{safe(tried.missing)} more {resource} needed in flavor {flavor}"
        case FlavorObstacle.SHORT:
            return f"too little {resource} in flavor {flavor}{f' ({safe(tried.about)})' if tried.about else ''}"
        case FlavorObstacle.TOO_LARGE:
            most = f", at most {safe(tried.most)}" if tried.most else ""
            return f"more {resource} than flavor {flavor} ever has for this queue{most}"
        case FlavorObstacle.NO_QUOTA:
            return f"its queue has no quota for {resource}"
        case FlavorObstacle.EXCLUDED:
            return f"flavor {flavor} is excluded by {safe(tried.about)}"


def _in_use(quota: QuotaInUse) -> str:
    """Return what is asked, free and used of a quota, and who borrows it."""
    about = f"{safe(quota.resource)} in flavor {safe(quota.flavor)}"
    own = f"{safe(quota.asked)} {about} asked, {safe(quota.free)} free"
    used = f"{safe(quota.queue)} uses {safe(quota.used)} of its {safe(quota.nominal)}"
    return ", ".join((own, used, *map(_borrower, quota.borrowers)))


def _borrower(each: QuotaBorrower) -> str:
    may = _RECLAIMS.get(each.reclaim, f"may be taken back by the policy {safe(each.reclaim)}")
    return f"{safe(each.queue)} borrows {safe(each.amount)}, which {may}"


_RECLAIMS: Final = {
    "Never": "this job may not take back",
    "Any": "this job may take back",
    "LowerPriority": "this job may take back from jobs of lower priority",
}


def _unschedulable(reason: Unschedulable) -> Iterator[str]:
    waiting = "its pod" if reason.wanted == 1 else f"{reason.pods} of its {reason.wanted} pods"
    if reason.nodes is None:
        yield f"no node for {waiting}"
        yield safe(reason.message)
        return
    yield f"none of {units.counted(reason.nodes, 'node')} can take {waiting}"
    if reason.excluded:
        yield ", ".join(map(_excluded, reason.excluded))


def _unschedulable_briefly(reason: Unschedulable) -> str:
    """Return the obstacle that most nodes have: `no node: 20 have too little free cpu`."""
    found = reason.by_nodes
    if reason.claims:
        return _CLAIMS[reason.claims[0].trouble].format(safe(reason.claims[0].claim))
    if found is not None and found.excluded and not found.fitting:
        return f"no node: {_group(found.excluded[0], dict(found.wanted))}"
    if reason.excluded:
        return f"no node: {_excluded(reason.excluded[0])}"
    return "no node for its pod" if reason.wanted == 1 else f"no node for {reason.pods} of its {reason.wanted} pods"


_CLAIMS: Final = {
    ClaimTrouble.ABSENT: "the volume claim {} does not exist",
    ClaimTrouble.NO_CLASS: "the volume claim {} has no storage class that exists",
    ClaimTrouble.UNBOUND: "the volume claim {} waits for its volume",
}


def _quota(each: QuotaUse) -> str:
    most, used, wanted = (
        units.counted(amount, "pod") if each.resource == "pods" else _amount(each.resource, amount, "")
        for amount in (each.most, each.used, each.wanted)
    )
    return f"the quota {safe(each.quota)} allows {most}, {used} in use, {wanted} asked"


def _claim(each: ClaimWaits) -> str:
    words = _CLAIMS[each.trouble].format(safe(each.claim))
    return f"{words} (storage class {safe(each.storage_class)})" if each.storage_class else words


def _by_nodes(reason: Unschedulable, now: Millis, zone: tzinfo | None) -> Iterator[str]:
    """Yield what else keeps the pods back: `by the nodes themselves, 6 have 4 H100 free, 2 have the taint spot`."""
    yield from map(_claim, reason.claims)
    found = reason.by_nodes
    if found is None:
        return
    if found.fitting:
        fit = f"{units.counted(found.fitting, 'node')} could take a pod now"
        # Of a job that is not submitted the scheduler has said nothing.
        said = f" of {clock(reason.message_at, now, zone)}" if reason.message_at is not None else ""
        old = f", so the scheduler's message{said} is old" if reason.excluded or reason.message else ""
        yield f"by the nodes themselves, {fit}{old}"
    elif found.excluded:
        yield f"by the nodes themselves, {', '.join(_group(each, dict(found.wanted)) for each in found.excluded)}"
    if found.wanted:
        wanted = [_amount(name, amount, _only_model(name, found)) for name, amount in found.wanted]
        yield f"a pod needs {listed(wanted)}"
    if not found.when_empty:
        yield "no node could take a pod even if it were empty"


def _only_model(resource: str, found: NodesLookedAt) -> str:
    """Return the model of the cards of all these nodes; empty: they differ."""
    models = {each.model for each in found.excluded if each.about == resource}
    return models.pop() if len(models) == 1 else ""


def _group(each: NodesExcluded, wanted: Mapping[str, int]) -> str:
    if each.obstacle is Obstacle.SELECTOR and each.about:
        return f"{each.nodes} {_lacks(each.nodes)} the label {safe(each.about)}"
    if each.free is None or each.about not in wanted:
        return _excluded(each)
    most = "at most " if each.at_most else ""
    free = _amount(each.about, each.free, each.model) if each.free else f"no {_noun(each.about, each.model)}"
    return f"{each.nodes} {_have(each.nodes)} {most}{free} free"


def _lacks(nodes: int) -> str:
    return "lacks" if nodes == 1 else "lack"


def _amount(resource: str, amount: int, model: str) -> str:
    """Return an amount of a resource in words: `4 H100`, `1.5 CPUs`, `64G of memory`."""
    if resource == "cpu":
        return f"{units.decimal(amount, 1000, digits=3)} {'CPU' if amount == 1000 else 'CPUs'}"
    if resource in _BYTES:
        return f"{units.memory(-(-amount // 1024**2))} of {_BYTES[resource]}"
    return f"{amount} {_noun(resource, model)}"


_BYTES: Final = {"memory": "memory", "ephemeral-storage": "local storage"}


def _noun(resource: str, model: str) -> str:
    return safe(model) or _BYTES.get(resource) or ("CPU" if resource == "cpu" else safe(resource))


def _excluded(each: NodesExcluded) -> str:
    one, several = _OBSTACLES[each.obstacle]
    # The scheduler gives no count for causes that concern the pod and no node.
    count = f"{each.nodes} " if each.nodes else ""
    if each.obstacle is Obstacle.TAINT and not each.about:
        return f"{count}{_have(each.nodes)} taints that it does not tolerate"
    return f"{count}{(one if each.nodes == 1 else several).format(safe(each.about))}"


def _starting(reason: PodsStarting) -> Iterator[str]:
    words = _STEPS if reason.pods == 1 else _STEPS_OF_SEVERAL
    code = f" ({safe(reason.code)})" if reason.code not in _PLAIN and reason.step is not Step.INIT else ""
    yield f"{units.counted(reason.pods, 'pod')} {words[reason.step]}{code}"
    if reason.message:
        yield safe(reason.message)
    if reason.pulls is not None:
        yield _PULLS[reason.pulls]


_PULLS: Final = {
    PullPolicy.NEVER: "its imagePullPolicy is Never, so that nothing pulls the image: load it onto the node, or "
    "submit the job with IfNotPresent",
    PullPolicy.ALWAYS: "its imagePullPolicy is Always, so that the registry has to answer even if the node has the "
    "image: with IfNotPresent it starts on such a node",
}
_MEMBERS: Final = {
    MemberState.NOT_CREATED: ("is not created", "are not created"),
    MemberState.NO_NODE: ("has no node", "have no node"),
    MemberState.WOULD_FIT: ("would fit", "would fit"),
    MemberState.NOT_CONSIDERED: ("waits for the scheduler", "wait for the scheduler"),
    MemberState.GATED: ("is kept back", "are kept back"),
    MemberState.STARTING: ("has a node and does not run", "have a node and do not run"),
}


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _gang(reason: GangIncomplete) -> Iterator[str]:
    pods, have = units.counted(reason.least, "pod"), _have(reason.ready)
    gang = f" of gang {safe(reason.gang)}" if reason.gang else ""
    yield f"starts with {pods}{gang} or not at all; {reason.ready} of them {have} a node"
    yield from map(_missing, reason.missing)
    if reason.message:
        yield safe(reason.message)
    if reason.by_nodes is not None:
        yield from _to_place(reason.by_nodes)


def _to_place(found: MembersToPlace) -> Iterator[str]:
    """Yield how many missing pods fit where, what is needed for the others, and what the other nodes have: `by the
    nodes themselves, 3 of the 8 missing pods fit now: 1 on each of 3 nodes (a, b and c)`."""
    pods = "the missing pod" if found.missing == 1 else f"the {found.missing} missing pods"
    if not found.fitting:
        fit = f"{pods} does not fit" if found.missing == 1 else f"none of {pods} fits"
    elif found.fitting < found.missing:
        fit = f"{found.fitting} of {pods} {'fits' if found.fitting == 1 else 'fit'}"
    else:
        fit = f"{pods} fits" if found.missing == 1 else f"all {found.missing} missing pods fit"
    where = f": {listed([_place(each) for each in found.places])}" if found.places else ""
    yield f"by the nodes themselves, {fit} now{where}"
    looked = found.looked_at
    if looked is None:
        return
    left, wanted = found.missing - found.fitting, dict(looked.wanted)
    each = listed([_amount(name, amount, _only_model(name, looked)) for name, amount in looked.wanted])
    if not found.when_empty:
        yield f"no node could take {'it' if found.missing == 1 else 'such a pod'} even if it were empty"
    elif found.when_empty == 1:
        has = "is" if left == 1 else "are"
        yield f"{units.counted(left, 'more node')} with {each} free {has} needed" if each else f"{left} have no place"
    else:
        need = f"{units.counted(left, 'more pod')} {'needs' if left == 1 else 'need'} {each}"
        yield f"{need}{' each' if left > 1 else ''}; an empty node takes {found.when_empty} of them"
    if looked.excluded:
        yield f"of the other nodes {', '.join(_group(group, wanted) for group in looked.excluded)}"


def _place(each: MembersPlaced) -> str:
    more = [f"{each.nodes - len(each.names)} more"] if each.nodes > len(each.names) else []
    names = listed([*map(safe, each.names), *more])
    if each.nodes == 1:
        return f"{each.members} on {names}"
    return f"{each.members} on each of {units.counted(each.nodes, 'node')} ({names})"


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
