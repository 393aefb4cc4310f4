"""Makes clusters for tests: nodes and jobs in one line each, and a world that runs cycles and carries out their
plans."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.attempt import Attempt, EndCause, Ending, EvictionMode, Leaving, Suspension
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.node import Allocation, Card, CardSlice, Node, NodeState, Placement
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.sched.cycle import next_plan
from cockpit.sched.decisions import Eviction, SliceSwitch
from cockpit.sched.explain import reason_of
from cockpit.sched.index import Index
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from cockpit.sched.snapshot import Snapshot

ANN = Submitter(UserName("ann"), 1000, 1000, (1000,), "/home/ann")


def cards(count: int, model: str = "A100", *, slices: int = 0, hardware: bool = False) -> tuple[Card, ...]:
    def uuids(index: int) -> tuple[str, ...]:
        return tuple(f"MIG-{index}-{slot}" for slot in range(slices)) if hardware else ()

    return tuple(Card(index=index, model=model, slices=slices, slice_uuids=uuids(index)) for index in range(count))


def node(name: str, has: tuple[Card, ...] | int = (), **fields) -> Node:
    has = cards(has) if isinstance(has, int) else has
    return Node(**{"name": NodeName(name), "cpus": 16, "memory_mib": 65536, "cards": has, **fields})


def wants(card_milli: int = 0, *models: str, cpus: int = 1, memory_mib: int = 1024) -> NodeSpec:
    return NodeSpec(cpus=cpus, memory_mib=memory_mib, card_milli=card_milli, card_models=models)


def spec_of(*specs: NodeSpec, nodes: int = 1, limit: int = 3600, pins: tuple[str, ...] = (), **fields) -> JobSpec:
    return JobSpec(
        name="job",
        command="true",
        output="/out",
        nodes=nodes,
        specs=specs or (wants(),),
        node_names=pins,
        time_limit_seconds=limit,
        **fields,
    )


class World:
    """The state that an engine would keep. Time passes only when a test says so."""

    def __init__(self, *nodes: Node, policy: Policy | None = None, **rules) -> None:
        """`rules`: fields of the snapshot: cluster, accounts, reservations, usage, qos_usage."""
        self.nodes = {each.name: each for each in nodes}
        self.nodes_version = 1
        self.policy = policy or Policy()
        self.rules = rules
        self.rules_version = 1
        self.now = Millis(0)
        self.version = 0
        self.queue: list[Job] = []
        self.jobs: dict[JobId, Job] = {}
        self.occupied: dict[JobId, Placement] = {}
        self.ends: dict[JobId, Millis] = {}
        self.started_at: dict[JobId, Millis] = {}
        self.index: Index | None = None
        self.plan: Plan | None = None
        self._changes: list[tuple[JobId, Placement | None]] = []
        self._changes_from = 0
        self._touched: list[JobId] = []

    def submit(self, *specs: NodeSpec, held_by: str = "", record: dict | None = None, **fields) -> JobId:
        return self.submit_spec(spec_of(*specs, **fields), held_by=held_by, **(record or {}))

    def submit_spec(self, spec: JobSpec, *, held_by: str = "", user: str = "ann", **record) -> JobId:
        """`record`: account, qos, partitions and the like, as the engine would have found them."""
        job = JobId(len(self.jobs) + 1)
        self.jobs[job] = Job(
            id=job,
            spec=spec,
            submitter=replace(ANN, name=UserName(user)),
            project=record.pop("project", user),
            submitted_at=self.now,
            state_since=self.now,
            held_by=held_by,
            held_since=self.now if held_by else None,
            **record,
        )
        self.queue.append(self.jobs[job])
        self._touch(job)
        return job

    def hold(self, job: JobId, by: str) -> None:
        """Hold the job; release it where `by` is empty."""
        self.change(job, held_by=by, held_since=self.now if by else None)

    def change(self, job: JobId, **fields) -> None:
        """A queued job's record."""
        self.jobs[job] = replace(self.jobs[job], **fields)
        self.queue = [self.jobs[each.id] for each in self.queue]
        self._touch(job)

    def withdraw(self, *jobs: JobId) -> None:
        gone = set(jobs)
        self.queue = [each for each in self.queue if each.id not in gone]
        for job in jobs:
            if self.jobs[job].state is JobState.QUEUED:
                self.jobs[job] = replace(self.jobs[job], state=JobState.STOPPED)
        self._touch(*jobs)

    def occupy(self, job: JobId, placement: Placement | None, ends: Millis | None = None) -> None:
        self.occupied.pop(job, None)
        self.ends.pop(job, None)
        if placement:
            self.occupied[job] = placement
        if ends is not None:
            self.ends[job] = ends
        self._changes.append((job, placement))
        self._touch(job)

    def _touch(self, *jobs: JobId) -> None:
        self._touched += jobs
        self.version += 1

    def end(self, job: JobId) -> None:
        known = self.jobs.get(job)
        if known is not None and (known.ending is not None or known.suspension is not None):
            self.jobs[job] = replace(known, state=JobState.STOPPED, ending=None, suspension=None)
        self.occupy(job, None)

    def keep_cards(self, job: JobId) -> None:
        """Fail the job; its container is held with its cards, with no known end."""
        self.jobs[job] = replace(self.jobs[job], state=JobState.ERROR)
        self.occupy(job, tuple(replace(part, cpus=0, memory_mib=0) for part in self.occupied[job]))

    def set_node(self, changed: Node) -> None:
        """Replace or add."""
        self.nodes = {**self.nodes, changed.name: changed}
        self.nodes_version += 1
        self.version += 1

    def change_rules(self, **rules) -> None:
        self.rules |= rules
        self.rules_version += 1
        self.version += 1

    def set_state(self, name: str, state: NodeState) -> None:
        self.set_node(replace(self.nodes[NodeName(name)], state=state))

    def snapshot(self) -> Snapshot:
        return Snapshot(
            version=self.version,
            now=self.now,
            nodes=self.nodes,
            nodes_version=self.nodes_version,
            queue=self.queue,
            occupied=self.occupied,
            ends=self.ends,
            changes=self._changes,
            changes_from=self._changes_from,
            touched=self._touched,
            nominated=[job for job, each in self.jobs.items() if each.clears and each.state is JobState.QUEUED],
            suspended=[job for job, each in self.jobs.items() if each.state is JobState.SUSPENDED],
            elastic=sorted(job for job in self.occupied if job in self.jobs and self.jobs[job].spec.elastic),
            jobs=self.jobs,
            rules_version=self.rules_version,
            **self.rules,
        )

    def cycle(self) -> Plan:
        """Run one cycle without carrying out its plan."""
        return self.planned(next_plan(self.plan, self.snapshot(), self.policy))

    def planned(self, plan: Plan) -> Plan:
        """It has been made of what there is now."""
        self.plan, self.index = plan, plan.index
        self._changes, self._touched = [], []
        self._changes_from = self.version
        return plan

    def run(self) -> Plan:
        """Run one cycle and carry out its starts."""
        plan = self.cycle()
        self.carry_out(plan)
        return plan

    def carry_out(self, plan: Plan) -> None:
        for turn in plan.switches:
            self.turn(turn)
        for each in plan.evictions:
            self.evict(each)
        for start in plan.starts:
            limit = self.jobs[start.job].spec.time_limit_seconds
            attempt = Attempt(
                number=1,
                spec_index=start.spec_index,
                placement=start.placement,
                placed_at=self.now,
                replicas=(),
                partition=start.partition,
                billing=start.billing,
            )
            running = replace(self.jobs[start.job], state=JobState.RUNNING, attempt=attempt, clears=())
            self.jobs[start.job] = running
            self.occupy(start.job, start.placement, Millis(self.now + 1000 * limit))
            self.started_at[start.job] = self.now
        self.withdraw(*(start.job for start in plan.starts))
        for growth in plan.growths:
            held = (*self.occupied[growth.job], *growth.placement)
            self.resize(growth.job, held, billing=growth.billing)

    def resize(self, job: JobId, held: Placement, **fields) -> None:
        """Give a running elastic job these workers from now on."""
        attempt = replace(self.jobs[job].attempt, placement=held, **fields)
        self.change_running(job, attempt=attempt)
        self.occupy(job, held, self.ends[job])

    def leave(self, job: JobId) -> None:
        """Its workers that were recalled are gone."""
        out = {each.rank for each in self.jobs[job].leaving}
        self.change_running(job, leaving=())
        self.resize(job, tuple(part for part in self.occupied[job] if part.rank not in out))

    def turn(self, turn: SliceSwitch) -> None:
        """Resume a suspended job, and suspend others in its place."""
        for other in turn.others:
            suspension = Suspension(for_jobs=turn.instead)
            held = tuple(replace(part, cpus=0) for part in self.occupied[other])
            self.change_running(other, state=JobState.SUSPENDED, state_since=self.now, suspension=suspension)
            self.occupy(other, held)
        job = self.jobs[turn.job]
        stood = job.attempt.suspended_ms + self.now - job.state_since
        attempt = replace(job.attempt, suspended_ms=stood, resumed_at=self.now)
        self.change_running(job.id, state=JobState.RUNNING, state_since=self.now, suspension=None, attempt=attempt)
        end = attempt.placed_at + stood + 1000 * job.spec.time_limit_seconds
        self.occupy(job.id, attempt.placement, Millis(end))

    def change_running(self, job: JobId, **fields) -> None:
        self.jobs[job] = replace(self.jobs[job], **fields)

    def evict(self, eviction: Eviction) -> None:
        """Carry out an eviction: a suspended job keeps memory and cards; any other job is ending until `gone`."""
        job, held = self.jobs[eviction.job], self.occupied[eviction.job]
        if eviction.mode is EvictionMode.SUSPEND:
            suspension = Suspension(for_jobs=(eviction.for_job,), grounds=eviction.grounds)
            self.jobs[job.id] = replace(job, state=JobState.SUSPENDED, state_since=self.now, suspension=suspension)
            self.occupy(job.id, tuple(replace(part, cpus=0) for part in held))
            return
        kill_at = Millis(self.now + 1000 * eviction.grace_seconds)
        taker = self.jobs[eviction.for_job]
        self.change(taker.id, clears=(*taker.clears, job.id))
        if eviction.mode is EvictionMode.SHRINK:
            told = {"at": self.now, "kill_at": kill_at, "for_job": taker.id, "grounds": eviction.grounds}
            self.change_running(job.id, leaving=(*job.leaving, *(Leaving(rank=r, **told) for r in eviction.ranks)))
            return
        ending = Ending(
            cause=EndCause.PREEMPTED,
            at=self.now,
            kill_at=kill_at,
            for_job=eviction.for_job,
            grounds=eviction.grounds,
            requeue=eviction.mode is EvictionMode.REQUEUE,
        )
        self.jobs[job.id] = replace(job, ending=ending)
        self.occupy(job.id, held, min(kill_at, self.ends.get(job.id, kill_at)))

    def gone(self, job: JobId) -> None:
        """End a job that was being ended; if requeued, it has its old place in the queue."""
        ending = self.jobs[job].ending
        self.end(job)
        requeued = ending is not None and ending.requeue
        state = JobState.QUEUED if requeued else JobState.STOPPED
        self.jobs[job] = replace(self.jobs[job], state=state, ending=None)
        if requeued:
            self.queue = sorted([*self.queue, self.jobs[job]], key=lambda each: each.id)

    def reason(self, job: JobId):
        """Return why the job waits, after the last cycle."""
        assert self.plan is not None
        return reason_of(self.plan, next(each for each in self.queue if each.id == job))

    def where(self, job: JobId) -> dict[str, list[int]]:
        """Cards by node that the job holds."""
        return {part.node: [each.card for each in part.slices] for part in self.occupied[job]}


def alone(cpus: int = 0, node_name: str = "n1", *slices: CardSlice) -> Placement:
    return (Allocation(0, NodeName(node_name), cpus, 0, slices),)
