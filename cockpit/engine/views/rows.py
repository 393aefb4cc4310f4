"""Rows for faces, made from the machine's records. Facts only; `present` makes words of them."""

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
from cockpit.model.reasons import StandsStill
from cockpit.model.spec import WHOLE_CARD, Access
from cockpit.model.view import HoldRow, NodeRow, Overview, SliceUse
from cockpit.sched.nodes.reservation_windows import kept_now
from cockpit.sched.rules.partitions import for_login

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.job import Job
    from cockpit.model.reasons import Reason
    from cockpit.model.staging import Progress

HIDDEN = "-"
"""Stands for whatever the asker may not see."""


def job_row(job: Job, reason: Reason | None, priority: int | None = None, starts_by: Millis | None = None) -> JobRow:
    """One line of the job list. `reason`, `priority` and `starts_by` count while it is queued."""
    attempt = job.attempt if job.state is not JobState.QUEUED else None  # the last one of a job that begins anew
    spec = job.spec.specs[attempt.spec_index if attempt is not None else 0]
    elastic = job.spec.elastic
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
        reason=reason if job.state is JobState.QUEUED else _stands_still(job),
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
    )


def _slow(job: Job) -> tuple[float, float] | None:
    """None where it does not watch for that any more."""
    performance = job.spec.resume.performance if job.spec.resume is not None else None
    if performance is None or job.attempt is None or job.attempt.slow is None:
        return None
    return job.attempt.slow.part, performance.threshold


def slowest(parts: Iterable[Progress]) -> Progress | None:
    """Of the copies of a job's replicas, that which it waits for longest."""
    return min(parts, key=lambda part: part.done / part.total if part.total else 0, default=None)


def _stands_still(job: Job) -> StandsStill | None:
    if job.suspension is None or job.ending is not None:
        return None
    return StandsStill(job.suspension.by, job.suspension.for_jobs)


def hold_row(job: Job) -> HoldRow:
    """A kept job's line; the job must be kept."""
    assert job.held_until is not None
    assert job.ended_at is not None
    assert job.attempt is not None
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
    """Every node with what is used of it; jobs that the asker may not see are `-`."""
    by_node: dict[NodeName, list[tuple[JobId, Placement]]] = {name: [] for name in machine.state.nodes}
    for job, placement in machine.occupied.items():
        for allocation in placement:
            by_node.setdefault(allocation.node, []).append((job, (allocation,)))
    others = _others_by_node(machine)
    kept = kept_now(machine.state.reservations, now)
    modes = {each.name: each.mode for each in machine.state.cluster.members}
    return [
        replace(
            _node_row(node, by_node[node.name], machine.state.jobs, may_see, others.get(node.name, ())),
            reserved=tuple(kept.get(node.name, ())),
            login=for_login(machine.state.cluster, node),
            binding=modes.get(member_of(node.name)),
        )
        for node in machine.state.nodes.values()
    ]


def _others_by_node(machine: Machine) -> dict[NodeName, list[Allocation]]:
    """What a fleet's members give to jobs of their own."""
    found: dict[NodeName, list[Allocation]] = {}
    for each in (each for held in machine.state.others.values() for placement in held for each in placement):
        found.setdefault(each.node, []).append(each)
    return found


def _node_row(
    node: Node,
    used: list[tuple[JobId, Placement]],
    jobs: Mapping[JobId, Job],
    may_see: Callable[[Job], bool],
    others: Sequence[Allocation],
) -> NodeRow:
    allocations = [(jobs[job], each) for job, placement in used for each in placement]
    slices = [_slice_use(job, part, may_see(job)) for job, each in allocations for part in each.slices]
    slices += [
        SliceUse(part.card, part.slot, part.milli, JobId(0), HIDDEN, HIDDEN) for each in others for part in each.slices
    ]
    slices.sort(key=lambda use: (use.card, -1 if use.slot is None else use.slot))
    held = [*others, *(each for _, each in allocations)]
    return NodeRow(
        node=node,
        used_cpus=sum(each.cpus for each in held),
        used_memory_mib=sum(each.memory_mib for each in held),
        used_card_milli=sum(use.milli for use in slices),
        used_cards=len({use.card for use in slices}),
        slices=tuple(slices),
        jobs=tuple(dict.fromkeys(job.id for job, _ in allocations if may_see(job))),
    )


def _any_models(job: Job) -> tuple[str, ...]:
    """Of whichever of its specs is placed."""
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
    )


def demand(machine: Machine) -> dict[str, int]:
    """Thousandths of cards that the queued jobs ask for, whoever's they are, by model, empty for any: of several specs
    the one that asks for most of it."""
    wanted: Counter[str] = Counter()
    for (nodes, specs), jobs in machine.indices.asking.groups().items():
        most: dict[str, int] = {}
        for spec in specs:
            for model in spec.card_models or ("",) * bool(spec.card_milli):
                most[model] = max(most.get(model, 0), spec.card_milli)
        wanted.update({model: milli * nodes * len(jobs) for model, milli in most.items()})
    return dict(sorted(wanted.items()))


def overview(machine: Machine, cluster: str, jobs: Iterable[Job] | None = None) -> Overview:
    """The header's figures; `jobs` are those that the asker may see, None: all."""
    if jobs is None:
        states = {state: len(members) for state, members in machine.indices.states.groups().items()}
        kept = len(machine.indices.kept.of(True))
    else:
        seen = list(jobs)
        states, kept = Counter(job.shown_state for job in seen), sum(job.kept for job in seen)
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
