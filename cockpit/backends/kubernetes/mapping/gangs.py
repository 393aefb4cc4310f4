"""Which members of a gang are missing, and why each of them is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob, role_of
from cockpit.backends.kubernetes.mapping.waiting import starting, unschedulable
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.pod_reasons import GangIncomplete, Gated, MemberState, MissingMembers, Unschedulable

_SATISFIED = frozenset({"Running", "Completed", "Finished"})
"""Phases of pod groups that had all that they need."""
_OF_GROUP = re.compile(r"pod group is (?:not )?ready, ")
"""The beginning of Volcano's sentence about a group, which its pods have where none of their own is known."""
_FOR_OTHERS = re.compile(
    r"(?:.* available: )?(?:pre-filter pod \S+ cannot (?:find enough sibling pods|proceed due to gated pods)"
    r'|podGroup \S+ failed recently|GangGroup "\S+" gets rejected due to member Pod |gangGroup .+ basic check: '
    r"|gangGroup \S+ is scheduling and this pod has not been attempted|representative pod \S+ of gangGroupID )"
)
"""What scheduler-plugins and Koordinator write of a pod that they did not look at because of its gang."""
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
    # A gang of one is a pod like any other.
    if ready >= least or least == 1:
        return None
    if gang.group is not None and gang.group.status.phase in _SATISFIED:
        return None
    missing = [*_existing(gang.pods, least)]  # step 2
    absent = least - ready - sum(each.count for each in missing if each.state is not MemberState.STARTING)
    if absent > 0:  # step 3
        missing.append(MissingMembers(absent, MemberState.NOT_CREATED, role=_absent_role(job)))
    said = gang.group.unschedulable if gang.group is not None else None
    # What it says of pods that the scheduler has looked at, they say themselves.
    is_said = any(each.state in {MemberState.NO_NODE, MemberState.WOULD_FIT} for each in missing)
    message = said.message[:_LONGEST] if said is not None and not is_said else ""
    # The pods of one object need no name for what they are together.
    name = "" if job.workload is not None and len(gang.pods) == len(job.pods) else gang.name
    return GangIncomplete(name, least, ready, tuple(missing), message)


def _existing(pods: Iterable[Pod], least: int) -> Iterator[MissingMembers]:
    """Yield the pods that do not run, those together of which the same is reported: the scheduler's refusals first."""
    alike: dict[_Report, list[Pod]] = {}
    placed: list[Pod] = []
    for pod in pods:
        if pod.is_placed:
            placed.append(pod)
        elif not pod.has_ended:
            alike.setdefault(_report(pod), []).append(pod)
    for (state, reason), same in sorted(alike.items(), key=lambda each: (_ORDER.index(each[0].state), -len(each[1]))):
        counted = replace(reason, pods=len(same), wanted=least) if isinstance(reason, Unschedulable) else reason
        yield MissingMembers(len(same), state, _names(same), reason=counted)
    if (waits := starting(placed)) is not None:
        yield MissingMembers(waits.pods, MemberState.STARTING, reason=waits)


class _Report(NamedTuple):
    """What is reported of a pod without a node."""

    state: MemberState
    reason: Unschedulable | Gated | None = None


_ORDER = (MemberState.NO_NODE, MemberState.GATED, MemberState.NOT_CONSIDERED, MemberState.WOULD_FIT)


def _report(pod: Pod) -> _Report:
    if pod.spec.scheduling_gates:
        return _Report(MemberState.GATED, Gated(tuple(gate.name for gate in pod.spec.scheduling_gates)))
    said = pod.unscheduled
    if said is None:
        return _Report(MemberState.NOT_CONSIDERED)
    # Volcano's word for a pod that it has a node for while the gang as a whole has none.
    if said.reason in {"Schedulable", "Undetermined"}:
        return _Report(MemberState.WOULD_FIT)
    if _FOR_OTHERS.match(said.message):
        return _Report(MemberState.NOT_CONSIDERED)
    reason = unschedulable(said.message, 1, 1)
    is_groups = reason.nodes is None and _OF_GROUP.match(said.message)
    return _Report(MemberState.NO_NODE, None if is_groups else reason)


def _names(pods: list[Pod]) -> tuple[str, ...]:
    return tuple(sorted(pod.metadata.name for pod in pods)[:_MOST_NAMES])


def _absent_role(job: KubeJob) -> str:
    """Return the role of which pods are missing; empty where there are several such roles, or none is known."""
    have = Counter(role_of(pod).lower() for pod in job.pods)
    short = [each.role for each in job.groups if have[each.role.lower()] < each.count]
    return short[0] if len(short) == 1 else ""
