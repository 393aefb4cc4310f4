"""The state of the embedded scheduler out of a cluster's jobs and nodes, for nodes, explanations and predictions.

1. A job's pods are tasks that spread over any number of nodes; several roles of unlike pods are components that start
   together.
2. Placed pods occupy their nodes, and the cards that the cluster tells, or as many that are only assumed.
3. Pods that belong to no job occupy their nodes, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.cards.placing import slices_on
from cockpit.backends.kubernetes.mapping.cards.view import (
    NO_CARDS,
    NO_CLUSTER_CARDS,
    ClusterCards,
    cards_of_nodes,
)
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.nodes import node_of
from cockpit.backends.kubernetes.mapping.quantities import NOTHING, PodAmounts, requested
from cockpit.backends.kubernetes.mapping.runs import attempts_of
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod, PodSpec
from cockpit.backends.kubernetes.objects.pod import Toleration as PodToleration
from cockpit.backends.kubernetes.objects.workload import LAUNCHER, WORKER
from cockpit.engine.state import ClusterState
from cockpit.model.attempt import Attempt, ExitStatus, Replica
from cockpit.model.cluster import Backfill, BackfillKind, Cluster
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.image import HOST
from cockpit.model.job import ENDED, Job, JobState, Submitter
from cockpit.model.labels import Toleration
from cockpit.model.node import Allocation, CardSlice, Placement
from cockpit.model.quota import QuotaTree
from cockpit.model.resilience import Elastic, JobRestart, WorkerRestart
from cockpit.model.spec import NO_LIMIT_SECONDS, WHOLE_CARD, JobSpec, Mode, NodeSpec, PriorityWord, TaskSpread

OUTPUT = "the logs of its pods"
"""What is shown for the file of a job's output."""
_OTHER_PODS = "pods of no job"
HOSTNAME = "kubernetes.io/hostname"
_Policy = TypeVar("_Policy", JobRestart, WorkerRestart)


class ClusterLists(NamedTuple):
    """Everything that was read of a cluster."""

    at: Millis
    nodes: Mapping[str, KubeNode]
    jobs: Mapping[JobId, KubeJob]
    """The jobs in order of their numbers."""
    others: tuple[Pod, ...]
    """Placed pods that belong to no job."""
    quota: QuotaTree | None = None
    """The quota tree in force."""
    known_cards: ClusterCards | None = None
    """The nodes' cards and the claims of pods; None: nothing is known but what the nodes tell."""
    version: object = None
    """Equal for lists that differ in their time at most."""

    @property
    def cards(self) -> ClusterCards:
        return self.known_cards or cards_of_nodes(self.nodes)

    @property
    def size(self) -> int:
        """The number of jobs."""
        return len(self.jobs)


def is_same(one: ClusterLists, other: ClusterLists) -> bool:
    """Return whether the lists differ in their time at most."""
    return one.version == other.version


def state(lists: ClusterLists) -> ClusterState:
    """Return the scheduler's state of the cluster."""
    cards = lists.cards
    nodes = {
        NodeName(name): node_of(each, cards.nodes.get(name, NO_CARDS).cards)
        for name, each in sorted(lists.nodes.items())
    }
    groups = [*map(_ranked, lists.jobs.values()), list(enumerate(lists.others))]
    placements = list(map(_by_node, _placements(groups, nodes, cards)))  # step 2
    jobs = {
        number: job_record(each, number, placements[order], cards)
        for order, (number, each) in enumerate(lists.jobs.items())
    }
    others = placements[-1]  # step 3
    return ClusterState(
        seq=1,
        at=lists.at,
        last_job_id=max(jobs, default=JobId(0)),
        nodes=nodes,
        jobs=jobs,
        # Any pod that fits is placed, whichever waits before it: the scheduler holds nothing back for the others.
        cluster=Cluster(backfill=Backfill(kind=BackfillKind.EASY)),
        others={_OTHER_PODS: (others,)} if others else {},
        quota=lists.quota,
    )


def shown_job(job: KubeJob, number: JobId, placement: Placement = (), cards: ClusterCards = NO_CLUSTER_CARDS) -> Job:
    """Return a job's record as users see it. `placement`: what its placed pods occupy, where that is known."""
    return replace(job_record(job, number, placement, cards), spec=shown_spec(job, cards))


def job_record(job: KubeJob, number: JobId, placement: Placement = (), cards: ClusterCards = NO_CLUSTER_CARDS) -> Job:
    """Return a job as cockpit's own engine would keep it. `placement`: what its placed pods occupy."""
    state_now, started = job.state, job.started_at
    # Its nodes may be unknown, as to a user who may not see nodes.
    is_placed = bool(placement or job.placed) or state_now in ENDED
    failed = job.first_failure
    ends = dict(job.ends)
    return Job(
        id=number,
        spec=spec_of(job, cards),
        submitter=Submitter(UserName(job.user or "-"), 0, 0, (), ""),
        project=job.meta.namespace,
        submitted_at=job.meta.created_at,
        state=state_now,
        state_since=job.ended_at or started or job.meta.created_at,
        held_by=job.suspended_by if job.is_held and state_now is JobState.QUEUED else "",
        attempt=Attempt(
            number=attempts_of(job),
            spec_index=0,
            placement=placement,
            placed_at=started or job.meta.created_at,
            replicas=tuple(
                Replica(
                    rank=rank,
                    started_at=started,
                    ended_at=job.ended_at if rank in ends else None,
                    exit=ExitStatus(code=ends[rank].exit_code, oom=ends[rank].reason == "OOMKilled")
                    if rank in ends
                    else None,
                )
                for rank in range(len(job.pods))
            ),
        )
        if is_placed
        else None,
        exit=ExitStatus(code=job.exit_code, oom=job.is_oom)
        if state_now in ENDED and (failed is not None or job.exit_code is not None)
        else None,
        end_cause=job.end_cause,
        ended_at=job.ended_at,
        account=job.meta.namespace,
        direct_priority=job.priority if state_now is JobState.QUEUED and job.priority else None,
    )


def spec_of(job: KubeJob, cards: ClusterCards = NO_CLUSTER_CARDS) -> JobSpec:
    """Return the job's specification as far as scheduling needs it (step 1)."""
    # Roles of equal pods, such as master and workers, are placed alike.
    merged: dict[_Placing, int] = {}
    for group, (count, wants) in zip(job.groups, job.sizes, strict=True):
        key = _placing(group.template.spec, wants)
        merged[key] = merged.get(key, 0) + count
    parts = [_part(job, count, placing, cards) for placing, count in merged.items() if count]
    if not parts:
        return _part(job, 1, _placing(PodSpec(), NOTHING), cards)
    first, *others = parts
    return replace(first, components=tuple(others)) if others else first


class _Placing(NamedTuple):
    """What of a pod decides where it may run."""

    wants: PodAmounts
    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[PodToleration, ...]
    node: str


def _placing(spec: PodSpec, wants: PodAmounts) -> _Placing:
    selector = tuple(sorted((spec.node_selector or {}).items()))
    return _Placing(wants, selector, spec.tolerations or (), spec.node_name)


def _part(job: KubeJob, count: int, placing: _Placing, cards: ClusterCards) -> JobSpec:
    each = node_spec(job, placing.wants, cards)
    selector = dict(placing.selector)
    # A job that names its node by the label of the host name means this node.
    names = tuple(map(NodeName, filter(None, (selector.pop(HOSTNAME, ""), placing.node))))
    return JobSpec(
        name=job.meta.name,
        command=job.command,
        output=OUTPUT,
        specs=(each if count == 1 else NodeSpec(cpus=0, memory_mib=0),),
        spread=TaskSpread(tasks=count, each=each) if count > 1 else None,
        node_names=names,
        node_selector=selector,
        tolerations=tuple(
            Toleration(each.key, None if each.operator == "Exists" else each.value)
            for each in placing.tolerations
            if each.effect in {"", "NoSchedule"}
        ),
        time_limit_seconds=job.deadline_seconds or NO_LIMIT_SECONDS,
        image=job.image or HOST,
        project=job.meta.namespace,
        account=job.meta.namespace,
    )


def shown_spec(job: KubeJob, cards: ClusterCards = NO_CLUSTER_CARDS) -> JobSpec:
    """Return the specification as users see it: a replica for each pod, with the size of the largest role's."""
    plan = spec_of(job, cards)
    largest = max(
        (each for _, each in job.sizes),
        key=lambda each: (cards.pod_milli(job, each), each.milli_cpus),
        default=NOTHING,
    )
    urgency = job.urgency_class
    is_word = urgency in set(PriorityWord)
    return replace(
        plan,
        specs=(node_spec(job, largest, cards),),
        # Each worker is a node of its own; a launcher has none.
        nodes=max(1, job.wanted if job.workers is None else job.workers[1]),
        spread=None,
        components=(),
        mode=_mode(job),
        priority=PriorityWord(urgency) if is_word else PriorityWord.NORMAL,
        qos=urgency if urgency and not is_word else None,
        elastic=_elastic(job),
    )


def _mode(job: KubeJob) -> Mode | None:
    if job.workload is not None and job.workload.spec.et_replica_specs:
        return Mode.DEEPSPEED if "deepspeed" in job.command.split() else Mode.HOROVOD
    return _MODES.get(job.kind)


_MODES = {"PyTorchJob": Mode.PYTORCH, "TFJob": Mode.TENSORFLOW, "MPIJob": Mode.HOROVOD}


def _elastic(job: KubeJob) -> Elastic | None:
    if job.workers is None:
        return None
    least, count, most = job.workers
    sizes = Elastic(workers=count, min_workers=least, max_workers=most, spot=job.is_spot)
    spec = job.workload.spec if job.workload is not None else None
    if spec is None or not spec.et_replica_specs:
        return sizes
    roles = {name.lower(): each for name, each in spec.et_replica_specs.items()}
    launcher = roles[LAUNCHER].template if LAUNCHER in roles else None
    return replace(
        sizes,
        job_restart_policy=_policy(JobRestart, spec.restart_policy),
        worker_restart_policy=_policy(WorkerRestart, roles[WORKER].restart_policy if WORKER in roles else ""),
        backoff_limit=sizes.backoff_limit if spec.backoff_limit is None else spec.backoff_limit,
        max_wait_seconds=job.max_wait_seconds or sizes.max_wait_seconds,
        launcher_selector=dict(launcher.spec.node_selector or {}) if launcher is not None else {},
    )


def _policy(policies: type[_Policy], written: str) -> _Policy:
    """Return the restart policy that is written; where it is none of these, that of a job without one."""
    return next((each for each in policies if each == written), policies("Never"))


def node_spec(job: KubeJob, wants: PodAmounts, cards: ClusterCards) -> NodeSpec:
    milli = cards.pod_milli(job, wants)
    # A spec has a part of one card or whole ones: parts of several cards count as these cards.
    whole = milli if milli <= WHOLE_CARD else -(-milli // WHOLE_CARD) * WHOLE_CARD
    return NodeSpec(cpus=wants.cpus, memory_mib=wants.memory_mib, card_milli=whole)


def job_placement(lists: ClusterLists, number: JobId) -> Placement:
    """Return what each placed pod of a job occupies, by rank."""
    # Which part of a card a pod has depends on the other pods of its node.
    nodes = {pod.spec.node_name for pod in lists.jobs[number].placed} & lists.nodes.keys()
    # Few of ten thousand jobs are on the same nodes.
    beside = [
        _ranked(each)
        for other, each in lists.jobs.items()
        if other != number and any(pod.spec.node_name in nodes for pod in each.pods)
    ]
    return _placements([_ranked(lists.jobs[number]), *beside, list(enumerate(lists.others))], nodes, lists.cards)[0]


def node_placement(job: KubeJob) -> Placement:
    """Return where the placed pods of a job are, without the cards that they have."""
    wanted = ((rank, pod.spec.node_name, requested(pod.spec)) for rank, pod in _ranked(job))
    return tuple(Allocation(rank, NodeName(node), wants.cpus, wants.memory_mib) for rank, node, wants in wanted)


def _ranked(job: KubeJob) -> list[tuple[int, Pod]]:
    """Return the placed pods of a job, each with its rank."""
    return [(rank, pod) for rank, pod in enumerate(job.pods) if pod.is_placed]


def _placements(
    groups: Sequence[Sequence[tuple[int, Pod]]], nodes: Collection[str], cards: ClusterCards
) -> list[Placement]:
    """Return what the pods of each group, such as a job's, occupy of these nodes. Pods come with their ranks."""
    # A node may be gone already, or be one that the user may not see.
    placed = [(group, *each) for group, pods in enumerate(groups) for each in pods if each[1].spec.node_name in nodes]
    # Shares of a card are numbered in the order in which their pods came, so that new ones change no number.
    placed.sort(key=lambda each: (each[2].metadata.created_at, each[2].metadata.namespace, each[2].metadata.name))
    by_node: dict[str, list[int]] = {}
    for place, (_, _, pod) in enumerate(placed):
        by_node.setdefault(pod.spec.node_name, []).append(place)
    slices: dict[int, tuple[CardSlice, ...]] = {}
    for node, there in by_node.items():
        held = [cards.places(placed[place][2])[0] for place in there]
        slices |= zip(there, slices_on(cards.nodes.get(node, NO_CARDS), held), strict=True)
    result: list[list[Allocation]] = [[] for _ in groups]
    for place, (group, rank, pod) in enumerate(placed):
        wants = requested(pod.spec)
        parts = tuple(sorted(slices[place]))
        result[group].append(Allocation(rank, NodeName(pod.spec.node_name), wants.cpus, wants.memory_mib, parts))
    return [tuple(sorted(each, key=lambda allocation: allocation.rank)) for each in result]


def _by_node(placement: Placement) -> Placement:
    """Return one allocation for each node: the scheduler counts a job once on a node."""
    found: dict[NodeName, Allocation] = {}
    for each in placement:
        before = found.get(each.node) or Allocation(each.rank, each.node, 0, 0)
        cpus, memory_mib = before.cpus + each.cpus, before.memory_mib + each.memory_mib
        found[each.node] = Allocation(before.rank, each.node, cpus, memory_mib, (*before.slices, *each.slices))
    return tuple(found.values())
