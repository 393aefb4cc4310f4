"""Replays recorded jobs under the present rules and under changed ones, to judge a change before it is made.

What is replayed of a job is what its row says: when it came, what it asked for, by whom, and how long it ran. Not
replayed are dependencies, begin times, preemption, requeues and changes of its number of workers: it comes when it was
submitted, starts once, and runs as long as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.accounts.changes import change_accounts
from cockpit.engine.configure import change_weights
from cockpit.engine.machine import Machine
from cockpit.engine.replay.jobs import BOUND_SECONDS, Arrival, Replay
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.accountchange import AccountChange
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import Backfill, Cluster, Preemption
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Node, NodeState
from cockpit.model.priority import WeightChanges
from cockpit.model.refusal import Refusal
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.sched.policy import Policy

if TYPE_CHECKING:
    from cockpit.engine.decide import Decision
    from cockpit.model.jobrow import JobRow

_ADMIN: Final = Submitter(UserName("root"), 0, 0, (), "/")
NEVER: Final = -1
"""The wait of a job that never starts."""


class PastJob(msgspec.Struct, frozen=True):
    """One recorded job as it is replayed."""

    arrival: Arrival
    user: str
    account: str
    queue: str
    recorded_seconds: int | None
    """How long it really waited; None: it did not start, or the log does not say."""
    is_assumed: bool = False
    """Whether it has not ended, so that it is taken to run until its time limit."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster: its nodes and its rules."""

    nodes: tuple[Node, ...]
    cluster: Cluster = Cluster()
    accounts: Accounts = Accounts()
    policy: Policy = Policy()


class LabChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What is different from today."""

    weights: WeightChanges | None = None
    backfill: Backfill | None = None
    accounts: tuple[AccountChange, ...] = ()
    removed_nodes: tuple[NodeName, ...] = ()
    added_nodes: tuple[tuple[int, NodeName], ...] = ()
    """How many copies of which node are added."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is different."""
        return self == LabChanges()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one replay."""

    waits: tuple[int, ...]
    """The wait of each job in seconds, in the order of the jobs; `NEVER`: it never starts."""
    cpu_utilisation: float
    """The part of the CPUs that jobs held, from the first submission to the last end."""
    card_utilisation: float
    stranded_card_hours: float
    """Card-hours during which cards were free while a job that asks for cards waited."""


def past_jobs(rows: Iterable[JobRow], now: Millis) -> list[PastJob]:
    """Return the jobs of these rows in order of submission, those that can be replayed. Jobs that ended in the queue
    are left out; one that has not ended runs from its start, or will run, for its time limit."""
    usable = [row for row in rows if not (row.ended_at is not None and row.started_at is None)]
    usable.sort(key=lambda row: (row.submitted_at, row.id))
    return [_past_job(JobId(number), row, now) for number, row in enumerate(usable, 1)]


def _past_job(number: JobId, row: JobRow, now: Millis) -> PastJob:
    nodes = max(1, row.nodes)
    node = NodeSpec(
        cpus=row.cpus // nodes,
        memory_mib=row.memory_mib // nodes,
        card_milli=row.card_milli // nodes,
        card_models=row.card_models,
    )
    spec = JobSpec(
        name="job", command="", output="", specs=(node,), nodes=nodes, time_limit_seconds=row.time_limit_seconds
    )
    limit = row.time_limit_seconds * 1000
    if row.started_at is not None and row.ended_at is not None:
        ran = max(0, row.ended_at - row.started_at - row.suspended_ms)
    else:
        ran = max(limit, now - row.started_at if row.started_at is not None else 0)
    who = Submitter(UserName(row.user), 0, 0, (), "/")
    submitted = events.JobSubmitted(number, spec, who, row.project, row.account, row.qos, row.partitions)
    waited = (row.started_at - row.submitted_at) // 1000 if row.started_at is not None else None
    queue = row.partitions[0] if row.partitions else ""
    # The time limit ends a job, as on the cluster; what ran longer there had its limit extended.
    arrival = Arrival(row.submitted_at, submitted, min(ran, limit))
    return PastJob(arrival, row.user, row.account, queue, waited, is_assumed=row.ended_at is None)


def today(nodes: Sequence[Node], cluster: Cluster, accounts: Accounts) -> Scenario:
    """Return the cluster as it is, with all of its nodes in service and without preemption, which is not replayed."""
    # Mutable, since nothing is changed: rules that are fixed can be tried out too.
    rules = replace(cluster, preemption=Preemption(), mutable=True)
    up = tuple(replace(node, state=NodeState.UP) for node in nodes)
    return Scenario(nodes=up, cluster=rules, accounts=accounts, policy=Policy(backfill=cluster.backfill))


def changed(scenario: Scenario, changes: LabChanges) -> Scenario | Refusal:
    """Return the scenario with the changes, as an administrator would make them; a `Refusal` where one is refused."""
    cluster, policy = scenario.cluster, scenario.policy
    if changes.backfill is not None:
        cluster, policy = replace(cluster, backfill=changes.backfill), replace(policy, backfill=changes.backfill)
    machine = Machine(ClusterState())
    _follow(machine, _rules(replace(scenario, cluster=cluster)))
    actor = Actor(_ADMIN, admin=True)
    decided: Decision
    for wanted in changes.accounts:
        if isinstance(decided := change_accounts(machine.state, actor, wanted), Refusal):
            return decided
        _follow(machine, decided)
    if changes.weights is not None:
        if isinstance(decided := change_weights(machine.state, changes.weights), Refusal):
            return decided
        _follow(machine, decided)
    state = machine.state
    nodes = _changed_nodes(scenario.nodes, changes)
    return Scenario(nodes=nodes, cluster=state.cluster, accounts=state.accounts, policy=policy)


def missing_nodes(scenario: Scenario, changes: LabChanges) -> list[NodeName]:
    """Return the nodes that the changes name and the cluster has not."""
    known = {node.name for node in scenario.nodes}
    named = [*changes.removed_nodes, *(name for _, name in changes.added_nodes)]
    return [name for name in named if name not in known]


def _changed_nodes(nodes: Sequence[Node], changes: LabChanges) -> tuple[Node, ...]:
    by_name = {node.name: node for node in nodes}
    kept = [node for node in nodes if node.name not in changes.removed_nodes]
    for count, name in changes.added_nodes:
        copies = (replace(by_name[name], name=NodeName(f"{name}+{number}")) for number in range(1, count + 1))
        kept.extend(copies)
    return tuple(kept)


def _rules(scenario: Scenario) -> list[events.EventBody]:
    accounts = scenario.accounts
    changed_accounts = events.AccountsChanged(
        associations=tuple(accounts.associations.values()), qos=tuple(accounts.qos.values())
    )
    return [events.ClusterConfigured(scenario.cluster), changed_accounts]


def _follow(machine: Machine, bodies: Iterable[events.EventBody]) -> None:
    for body in bodies:
        seq = machine.state.seq + 1
        machine.follow(events.EventRecord(seq=seq, at=Millis(0), actor="lab", origin="lab", body=body))


def run_scenario(scenario: Scenario, past: Sequence[PastJob], watch: Callable[[int], None] | None = None) -> Outcome:
    """Replay the jobs on the cluster of the scenario. `watch` is called now and then with the number of ended jobs."""
    arrivals = [each.arrival for each in past]
    replay = Replay(scenario.nodes, arrivals, scenario.policy, _rules(scenario))
    meter = _Meter(scenario.nodes, past)
    replay.on_event = meter.note
    for ended in replay.moments():
        if watch is not None:
            watch(ended)
    started = replay.started_at
    waits = tuple(
        (started[each.submitted.job] - each.at) // 1000 if each.submitted.job in started else NEVER for each in arrivals
    )
    return meter.outcome(waits)


class _Meter:
    """Adds up what jobs hold over time, and the free cards while a job with cards waits."""

    def __init__(self, nodes: Sequence[Node], past: Sequence[PastJob]) -> None:
        self._cpus = sum(node.cpus for node in nodes)
        self._card_milli = 1000 * sum(len(node.cards) for node in nodes)
        self._specs = {each.arrival.submitted.job: each.arrival.submitted.spec for each in past}
        self._first_at = past[0].arrival.at if past else Millis(0)
        self._now = self._first_at
        self._used_cpus = self._used_milli = self._waiting = 0
        self._cpu_ms = self._milli_ms = self._stranded_ms = 0

    def note(self, body: events.EventBody, now: Millis) -> None:
        """Take account of an event of the replay."""
        match body:
            case events.JobSubmitted():
                self._advance(now)
                self._waiting += self._wants_cards(body.job)
            case events.JobPlaced():
                self._advance(now)
                self._waiting -= self._wants_cards(body.job)
                self._hold(body.job, 1)
            case events.JobArchived():
                self._advance(now)
                self._hold(body.job, -1)

    def outcome(self, waits: tuple[int, ...]) -> Outcome:
        """Return the result up to the last event."""
        span = self._now - self._first_at
        return Outcome(
            waits=waits,
            cpu_utilisation=_ratio(self._cpu_ms, self._cpus * span),
            card_utilisation=_ratio(self._milli_ms, self._card_milli * span),
            stranded_card_hours=self._stranded_ms / 1000 / 3_600_000,
        )

    def _wants_cards(self, job: JobId) -> int:
        return int(self._specs[job].specs[0].card_milli > 0)

    def _hold(self, job: JobId, sign: int) -> None:
        spec = self._specs[job]
        self._used_cpus += sign * spec.nodes * spec.specs[0].cpus
        self._used_milli += sign * spec.nodes * spec.specs[0].card_milli

    def _advance(self, now: Millis) -> None:
        lasted = max(0, now - self._now)
        self._cpu_ms += lasted * self._used_cpus
        self._milli_ms += lasted * self._used_milli
        if self._waiting:
            self._stranded_ms += lasted * max(0, self._card_milli - self._used_milli)
        self._now = max(self._now, now)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def bounded_slowdown(waited: int, ran: int) -> float:
    """Return the bounded slowdown of a job, as `Run.bounded_slowdown`; times in seconds."""
    return max(1.0, (waited + ran) / max(ran, BOUND_SECONDS))
