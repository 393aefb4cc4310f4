"""Which members of a gang are missing, and why each of them is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob, role_of
from cockpit.backends.kubernetes.mapping.waiting import starting, unschedulable
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.pod_reasons import GangIncomplete, Gated, MemberState, MissingMembers, Unschedulable

_SATISFIED = frozenset({"Running", "Completed", "Finished"})
"""Phases of pod groups that had all that they need."""
_MOST_NAMES = 3
_LONGEST = 400


def gang_reason(job: KubeJob) -> GangIncomplete | None:
    """Return which members keep the job's gang from starting; None: the gang is complete, or none is known of.

    1. Pods with a node and those that ended well count as members that are there.
    2. Of the others, those that exist are put together by what the scheduler reports of each.
    3. What is missing beyond them has not been created.
    """
    gang = job.batch.gang
    if gang is None:
        return None
    least = gang.least
    ready = sum(pod.is_placed or pod.now.phase == "Succeeded" for pod in gang.pods)  # step 1
    if ready >= least:
        return None
    if gang.group is not None and gang.group.status.phase in _SATISFIED:
        return None
    missing = [*_existing(gang.pods, least)]  # step 2
    absent = least - ready - sum(each.count for each in missing if each.state is not MemberState.STARTING)
    if absent > 0:  # step 3
        missing.append(MissingMembers(absent, MemberState.NOT_CREATED, role=_absent_role(job)))
    said = gang.group.unschedulable if gang.group is not None else None
    is_said = any(each.reason is not None for each in missing)
    message = said.message[:_LONGEST] if said is not None and not is_said else ""
    return GangIncomplete(gang.name, least, ready, tuple(missing), message)


def _existing(pods: Iterable[Pod], least: int) -> Iterator[MissingMembers]:
    """Yield the pods that do not run, those together of which the same is reported: the scheduler's refusals first."""
    alike: dict[object, list[Pod]] = {}
    placed: list[Pod] = []
    for pod in pods:
        if pod.is_placed:
            placed.append(pod)
        elif not pod.has_ended:
            alike.setdefault((_member_state(pod), _said_of(pod)), []).append(pod)
    for same in sorted(alike.values(), key=lambda each: (_ORDER.index(_member_state(each[0])), -len(each))):
        state = _member_state(same[0])
        reason: Unschedulable | Gated | None = None
        if state is MemberState.GATED:
            reason = Gated(tuple(gate.name for gate in same[0].spec.scheduling_gates or ()))
        elif state is MemberState.NO_NODE:
            reason = unschedulable(_said_of(same[0]), len(same), least)
        yield MissingMembers(len(same), state, _names(same), reason=reason)
    if (waits := starting(placed)) is not None:
        yield MissingMembers(waits.pods, MemberState.STARTING, reason=waits)


_ORDER = (MemberState.NO_NODE, MemberState.GATED, MemberState.NOT_CONSIDERED, MemberState.WOULD_FIT)


def _member_state(pod: Pod) -> MemberState:
    if pod.spec.scheduling_gates:
        return MemberState.GATED
    if pod.unscheduled is None:
        return MemberState.NOT_CONSIDERED
    # Volcano's word for a pod that it has a node for while the gang as a whole has none.
    if pod.unscheduled.reason in {"Schedulable", "Undetermined"}:
        return MemberState.WOULD_FIT
    return MemberState.NO_NODE


def _said_of(pod: Pod) -> str:
    if pod.spec.scheduling_gates:
        return ",".join(gate.name for gate in pod.spec.scheduling_gates)
    return pod.unscheduled.message if pod.unscheduled is not None else ""


def _names(pods: list[Pod]) -> tuple[str, ...]:
    return tuple(sorted(pod.metadata.name for pod in pods)[:_MOST_NAMES])


def _absent_role(job: KubeJob) -> str:
    """Return the role of which pods are missing; empty where there are several such roles, or none is known."""
    have = Counter(role_of(pod).lower() for pod in job.pods)
    short = [each.role for each in job.groups if have[each.role.lower()] < each.count]
    return short[0] if len(short) == 1 else ""
