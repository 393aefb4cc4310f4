"""Builds the rows of jobs, holds and nodes that clients get. Rows are data; `present` turns them into text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.completion_policy import first_failure
from cockpit.model.fleet import member_of
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Allocation, CardSlice, Node, Placement
from cockpit.model.reasons import SuspendedReason
from cockpit.model.spec import WHOLE_CARD, Access
from cockpit.model.view import HoldRow, NodeRow, Overview, SliceUse
from cockpit.sched.nodes.reservation_windows import reservations_in_force
from cockpit.sched.rules.partitions import for_login

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.job import Job
    from cockpit.model.reasons import Reason
    from cockpit.model.staging import Progress

HIDDEN = "-"
"""The placeholder for names that the user may not see."""


def job_row(job: Job, reason: Reason | None, priority: int | None = None, starts_by: Millis | None = None) -> JobRow:
    """Return the row of a job. `reason`, `priority` and `starts_by` are shown only while it is queued."""
    # A requeued job still has its last attempt, which says nothing about the one that it waits for.
    attempt = job.attempt if job.state is not JobState.QUEUED else None
    spec = job.spec.specs[attempt.spec_index if attempt is not None else 0]
    elastic = job.spec.elastic
    # An elastic job shows what it asked for until it runs, then what it has; its range is in `workers`.
    nodes = job.spec.least_nodes if elastic is None else job.spec.nodes if attempt is None else len(attempt.placement)
    starts = [each.started_at for each in attempt.replicas if each.started_at is not None] if attempt else []
    return JobRow(
        id=job.id,
        version=job.version,
        name=job.spec.name,
        user=job.submitter.name,
        state=job.shown_state,
        state_since=job.state_since,
        submitted_at=job.submitted_at,
        started_at=min(starts, default=None),
        suspended_ms=attempt.suspended_ms if attempt is not None else 0,
        ended_at=job.ended_at,
        held_until=job.held_until,
        ending=job.ending.cause if job.ending is not None else None,
        end_cause=job.end_cause,
        exit_code=job.exit.shell_code if job.exit is not None else None,
        nodes=nodes,
        cpus=spec.cpus * nodes,
        memory_mib=spec.memory_mib * nodes,
        card_milli=spec.card_milli * nodes,
        card_models=spec.card_models if attempt is not None else _any_models(job),
        placed_on=tuple(each.node for each in attempt.placement) if attempt is not None else (),
        time_limit_seconds=job.spec.time_limit_seconds,
        reason=reason if job.state is JobState.QUEUED else _suspended_reason(job),
        command=job.spec.command,
        project=job.project,
        pool=job.spec.pool or "",
        output=job.spec.output,
        algorithm=job.spec.algorithm.called if job.spec.algorithm is not None else "",
        oom=job.exit is not None and job.exit.oom,
        lost=job.exit.lost if job.exit is not None else "",
        partitions=(attempt.partition,) if attempt is not None and attempt.partition else job.partitions,
        account=job.account,
        qos=job.qos,
        priority=priority if job.state is JobState.QUEUED else None,
        array=job.array,
        starts_by=starts_by if job.state is JobState.QUEUED else None,
        clusters=tuple(dict.fromkeys(attempt.members)) if attempt is not None else (),
        access=job.spec.access if job.spec.access is not Access.NONE else None,
        workers=(elastic.min_workers, elastic.workers, elastic.max_workers) if elastic is not None else None,
        attempt=job.attempt.number if job.attempt is not None else 1,
        hook=job.exit.hook if job.exit is not None else "",
        retries=(job.retries, max(job.spec.most_retries, job.spec.most_worker_retries)) if job.retries else None,
        kind=job.kind,
        spec_name=spec.name,
        waits_until=job.waits_until,
        slow=_slow(job) if attempt is not None and attempt.slow is not None else None,
        ended_by=job.ended_by if job.ending is None else job.ending.by,
        failed=first_failure(job) if attempt is not None and len(attempt.replicas) > 1 else None,
        leaving=_leaving(job) if elastic is not None else None,
        alert=max(job.alerts, key=lambda each: each.at) if job.alerts else None,
    )


def _slow(job: Job) -> tuple[float, float] | None:
    """Return the slow iteration's hardware share and the threshold; None: there is none, or it is not watched now."""
    performance = job.spec.resume.performance if job.spec.resume is not None else None
    if performance is None or job.attempt is None or job.attempt.slow is None:
        return None
    return job.attempt.slow.part, performance.threshold


def _leaving(job: Job) -> tuple[int, Millis] | None:
    """Return how many workers of an elastic job were asked to end, and when the first is killed; None: none was."""
    kills = [each.kill_at for each in job.leaving]
    if job.ending is not None and job.attempt is not None:
        # All others leave with the whole job.
        others = len(job.attempt.placement) - len(kills)
        kills += [job.ending.kill_at] * max(0, others)
    return (len(kills), min(kills)) if kills else None


def slowest(parts: Iterable[Progress]) -> Progress | None:
    """Return the staging progress of the replica that is least done, which the job waits for; None: there is none."""
    return min(parts, key=lambda part: part.done / part.total if part.total else 0, default=None)


def _suspended_reason(job: Job) -> SuspendedReason | None:
    """Return why the job is suspended; None: it is not, or is being ended."""
    if job.suspension is None or job.ending is not None:
        return None
    return SuspendedReason(job.suspension.by, job.suspension.for_jobs)


def hold_row(job: Job) -> HoldRow:
    """Return the row of a job's debug hold. The job must have one."""
    assert job.held_until is not None
    assert job.ended_at is not None
    assert job.attempt is not None
    # Only held cards are lost to other jobs; the container itself takes no CPUs or memory of the scheduler's.
    keeps = sum(each.card_milli for each in job.attempt.placement) if job.spec.debug_hold.cards == "keep" else 0
    return HoldRow(
        job=job.id,
        name=job.spec.name,
        user=job.submitter.name,
        state=job.state,
        exit_code=job.exit.shell_code if job.exit is not None else None,
        nodes=tuple(each.node for each in job.attempt.placement),
        ended_at=job.ended_at,
        held_until=job.held_until,
        keeps_card_milli=keeps,
    )


def node_rows(machine: Machine, may_see: Callable[[Job], bool], now: Millis) -> list[NodeRow]:
    """Return the rows of all nodes with their occupied resources. Jobs that `may_see` excludes are shown as `-`."""
    # By node once, instead of going through all jobs for each node.
    by_node: dict[NodeName, list[tuple[JobId, Placement]]] = {name: [] for name in machine.state.nodes}
    for job, placement in machine.occupied.items():
        for allocation in placement:
            by_node.setdefault(allocation.node, []).append((job, (allocation,)))
    others = _others_by_node(machine)
    kept = reservations_in_force(machine.state.reservations, now)
    modes = {each.name: each.mode for each in machine.state.cluster.members}
    return [
        replace(
            _node_row(node, by_node[node.name], machine.state.jobs, may_see, others.get(node.name, ())),
            reserved=tuple(kept.get(node.name, ())),
            excluded_for=len(machine.state.failed_prechecks.get(node.name, ())),
            login=for_login(machine.state.cluster, node),
            binding=modes.get(member_of(node.name)),
        )
        for node in machine.state.nodes.values()
    ]


def _others_by_node(machine: Machine) -> dict[NodeName, list[Allocation]]:
    """Return the allocations of jobs that were submitted directly to members of a fleet, by node."""
    by_node: dict[NodeName, list[Allocation]] = {}
    for each in (each for held in machine.state.others.values() for placement in held for each in placement):
        by_node.setdefault(each.node, []).append(each)
    return by_node


def _node_row(
    node: Node,
    used: list[tuple[JobId, Placement]],
    jobs: Mapping[JobId, Job],
    may_see: Callable[[Job], bool],
    others: Sequence[Allocation],
) -> NodeRow:
    """Return a node's row. `used`: what jobs hold of it; `others`: what a fleet's member gives to jobs of its own."""
    allocations = [(jobs[job], each) for job, placement in used for each in placement]
    # Once for each job: a cluster has ten thousand of them on its nodes.
    visible = {job.id: may_see(job) for job, _ in allocations}
    slices = [_slice_use(job, part, visible[job.id]) for job, each in allocations for part in each.slices]
    slices += [
        SliceUse(part.card, part.slot, part.milli, JobId(0), HIDDEN, HIDDEN, assumed=part.assumed)
        for each in others
        for part in each.slices
    ]
    # Cards in their order, and on each its slots; a whole card has no slot. Cards that are not known come last.
    slices.sort(key=lambda use: (use.assumed, use.card, -1 if use.slot is None else use.slot))
    held = [*others, *(each for _, each in allocations)]
    return NodeRow(
        node=node,
        used_cpus=sum(each.cpus for each in held),
        used_memory_mib=sum(each.memory_mib for each in held),
        used_card_milli=sum(use.milli for use in slices),
        used_cards=len({use.card for use in slices}),
        slices=tuple(slices),
        jobs=tuple(job for job, seen in visible.items() if seen),
    )


def _any_models(job: Job) -> tuple[str, ...]:
    """Return the card models of all alternatives of a job that has not been placed."""
    specs = job.spec.specs
    if len(specs) == 1:
        return specs[0].card_models
    return tuple(dict.fromkeys(model for each in specs for model in each.card_models))


def _slice_use(job: Job, part: CardSlice, visible: bool) -> SliceUse:
    return SliceUse(
        card=part.card,
        slot=part.slot,
        milli=part.milli,
        job=job.id if visible else JobId(0),
        name=job.spec.name if visible else HIDDEN,
        user=job.submitter.name if visible else HIDDEN,
        held=job.kept,
        assumed=part.assumed,
    )


def demand(machine: Machine) -> dict[str, int]:
    """Return the cards that all queued jobs ask for, in thousandths by model; the empty model means any.

    A job with alternatives counts with the one that asks for most cards of each model.
    """
    wanted: Counter[str] = Counter()
    for (nodes, specs), jobs in machine.indices.asking.groups().items():
        most: dict[str, int] = {}
        for spec in specs:
            # A spec without a model that needs cards asks for any; one without cards asks for none.
            for model in spec.card_models or ("",) * bool(spec.card_milli):
                most[model] = max(most.get(model, 0), spec.card_milli)
        wanted.update({model: milli * nodes * len(jobs) for model, milli in most.items()})
    return dict(sorted(wanted.items()))


def overview(machine: Machine, cluster: str, jobs: Iterable[Job] | None = None) -> Overview:
    """Return the figures of the screen's header. `jobs`: the jobs that the user may see; None: all."""
    # Counting all jobs through the indices takes no time with a hundred thousand of them.
    if jobs is None:
        states = {state: len(members) for state, members in machine.indices.states.groups().items()}
        kept = len(machine.indices.kept.of(True))
    else:
        visible_jobs = list(jobs)
        states, kept = Counter(job.shown_state for job in visible_jobs), sum(job.kept for job in visible_jobs)
    nodes = machine.state.nodes.values()
    others = (placement for held in machine.state.others.values() for placement in held)
    held = [each for placement in (*machine.occupied.values(), *others) for each in placement]
    return Overview(
        cluster=cluster,
        jobs_by_state={str(state): count for state, count in states.items()},
        held=kept,
        nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        used_cpus=sum(each.cpus for each in held),
        memory_mib=sum(node.memory_mib for node in nodes),
        used_memory_mib=sum(each.memory_mib for each in held),
        card_milli=sum(len(node.cards) for node in nodes) * WHOLE_CARD,
        used_card_milli=sum(each.card_milli for each in held),
        demand=demand(machine),
    )
