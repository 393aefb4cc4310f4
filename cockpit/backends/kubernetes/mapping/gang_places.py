"""How many of a gang's missing members the nodes could take now, on which nodes, and what the others lack.

1. Pods that exist and have no node are missing, and so many that do not exist yet as the gang needs beside them.
2. They are placed on a copy of the nodes by the rules of the scheduler's filters, the largest first, without evictions.
3. The nodes are looked at for the first member that is left over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob, role_of
from cockpit.backends.kubernetes.mapping.node_filters import NodePods, could_hold
from cockpit.backends.kubernetes.mapping.node_groups import holders, look_at_nodes
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds, needs_of
from cockpit.backends.kubernetes.mapping.pod_scheduling import Simulation, WaitingJob
from cockpit.backends.kubernetes.mapping.quantities import CPU, MEMORY
from cockpit.model.ids import JobId, Millis
from cockpit.model.pod_reasons import GangIncomplete, MembersPlaced, MembersToPlace
from cockpit.sched.forecast.predict import HYPOTHETICAL

_MOST_NAMES = 3
_GANG = JobId(HYPOTHETICAL)


def places_of(
    job: KubeJob, reason: GangIncomplete, nodes: Mapping[str, NodePods]
) -> tuple[MembersToPlace, list[JobId]] | None:
    """Return where the gang's missing members fit, and the jobs that use what those left over lack, the largest first;
    None: no node is known, or all members have nodes."""
    missing = sorted(_missing(job, reason.least), key=_size, reverse=True)
    if not missing or not nodes:
        return None
    waits = WaitingJob(_GANG, Millis(0), tuple(replace(each, preempts=False) for each in missing), None)
    simulation = Simulation(nodes, [waits], (), Millis(0))
    simulation.run()  # step 2
    taken = simulation.places(_GANG)
    left = simulation.left_needs(_GANG)
    if left is None:
        return MembersToPlace(len(missing), len(missing), tuple(_by_count(taken))), []
    after = simulation.nodes  # step 3
    others = {name: each for name, each in after.items() if name not in taken}
    looked = look_at_nodes(left, others)
    # Of nodes that are full of members it is known what they lack, and not worth a word.
    looked = replace(looked, wanted=look_at_nodes(left, after).wanted)
    when_empty = max(_most_when_empty(left, each) for each in after.values())
    found = MembersToPlace(len(missing), len(taken), tuple(_by_count(taken)), when_empty, looked)
    return found, holders(left, others)


def _missing(job: KubeJob, least: int) -> list[PodNeeds]:
    """Return what each missing member needs (step 1). Members of which nothing is known count as the last known one."""
    gang = job.batch.gang
    pods = gang.pods if gang is not None else ()
    there = sum(pod.is_placed or pod.now.phase == "Succeeded" for pod in pods)
    waiting = [pod for pod in pods if not pod.is_placed and not pod.has_ended][: max(0, least - there)]
    found = [needs_of(pod.spec, pod.metadata.namespace, pod.metadata.labels) for pod in waiting]
    absent = least - there - len(waiting)
    have = Counter(role_of(pod).lower() for pod in job.pods)
    for group in job.groups:
        count = min(absent, max(0, group.count - have[group.role.lower()]))
        labels = group.template.metadata.labels if group.template.metadata is not None else None
        found += [needs_of(group.template.spec, job.meta.namespace, labels) for _ in range(count)]
        absent -= count
    return found + found[-1:] * absent


def _size(needs: PodNeeds) -> tuple[int, int]:
    """Return the key by which members are ordered: by their cards, then their CPUs."""
    devices = max((amount for name, amount in needs.request if name not in {CPU, MEMORY}), default=0)
    return devices, needs.amount(CPU)


def _by_count(taken: list[str]) -> Iterator[MembersPlaced]:
    """Yield the nodes that take the same number of members, the largest number first."""
    names: dict[int, list[str]] = defaultdict(list)
    for name, count in Counter(taken).items():
        names[count].append(name)
    for count, same in sorted(names.items(), reverse=True):
        yield MembersPlaced(count, len(same), tuple(sorted(same)[:_MOST_NAMES]))


def _most_when_empty(needs: PodNeeds, node: NodePods) -> int:
    """Return how many such pods the node could take, were it empty."""
    if not could_hold(needs, node):
        return 0
    return min(
        (node.allocatable.get(name, 0) // amount for name, amount in (*needs.request, ("pods", 1)) if amount), default=0
    )
