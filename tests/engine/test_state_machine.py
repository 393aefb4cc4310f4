"""Anything people, containers and the clock may do, in any order: the promises hold after every event.

`EngineDriver.tell` checks all invariants after each event; the rules here only choose what happens next.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from cockpit.engine import decide, evictions, faults
from cockpit.engine.access import Actor
from cockpit.engine.apply.events import apply
from cockpit.engine.configure import apply_quota
from cockpit.engine.dependencies import DependencyOutcomes, verdict
from cockpit.engine.machine import Machine
from cockpit.engine.nodes import service
from cockpit.engine.priority_changes import set_priority
from cockpit.engine.reservations import make_reservation
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import edit, submit
from cockpit.model import events
from cockpit.model.accounts import Qos
from cockpit.model.asking import SiteFactor, WantedPriority
from cockpit.model.cluster import Cluster, Preemption, Priority, PriorityFlag, PriorityKind, Reservation
from cockpit.model.events import EventRecord
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.quota import JOBS, QuotaNode, QuotaTree
from cockpit.model.resilience import Restart, Resume
from cockpit.model.spec import Array, DebugHold, Dependency, DependencyKind, HoldCards, PriorityWord
from tests.builders import ANN, BOB, HOUR, SECOND, a_card, a_node, a_spec
from tests.engine.driver import EngineDriver

_ADMIN = Actor(ANN, admin=True)
_SINGLETON = Dependency(DependencyKind.SINGLETON)
_AGAIN = st.sampled_from([None, None, Restart(max_restarts=1), Resume(max_resumes=1, grace_seconds=60)])
_CAN_END = (JobState.RUNNING, JobState.STARTING, JobState.RESUMING, JobState.SUSPENDED)
_CARDS = st.sampled_from([0, 250, 300, 500, 1000, 2000, 4000])


class EngineMachine(RuleBasedStateMachine):
    """Two nodes: one with whole cards, one whose cards are sliced in four."""

    def __init__(self) -> None:
        super().__init__()
        sliced = tuple(a_card(index, slices=4) for index in range(2))
        self.engine = EngineDriver(
            a_node("n1", cpus=4, cards=4, pool="a"), a_node("n2", cpus=4, card_list=sliced, pool="a")
        )
        self.engine.tell(
            events.AccountsChanged(
                qos=(Qos(name="low", grace_seconds=20), Qos(name="high", priority=9, preempt=("low",)))
            )
        )
        self.count = 0

    def jobs(self, *states: JobState) -> list[Job]:
        return [job for job in self.engine.machine.state.jobs.values() if job.state in states]

    @rule(
        cards=_CARDS,
        nodes=st.integers(1, 2),
        hold=st.booleans(),
        keep=st.booleans(),
        cpus=st.integers(1, 4),
        qos=st.sampled_from(["low", "low", "high"]),
        by=st.sampled_from([ANN, BOB]),
        again=_AGAIN,
    )
    def submit(
        self,
        cards: int,
        nodes: int,
        hold: bool,
        keep: bool,
        cpus: int,
        qos: str,
        by: Submitter,
        again: Restart | Resume | None,
    ) -> None:
        self.count += 1
        if cards > 2000 and nodes > 1:
            nodes = 1
        cards_mode = HoldCards.KEEP if keep else HoldCards.FREE
        self.engine.submit(
            a_spec(
                f"job-{self.count}",
                cpus=cpus,
                card_milli=cards,
                nodes=nodes,
                hold=hold,
                terminal=True,
                qos=qos,
                time_limit_seconds=600,
                debug_hold=DebugHold(cards=cards_mode),
                restart=again if isinstance(again, Restart) else None,
                resume=again if isinstance(again, Resume) else None,
                pool="a" if isinstance(again, Resume) else None,
            ),
            by=by,
        )

    @rule(
        kind=st.sampled_from(DependencyKind),
        data=st.data(),
        tasks=st.integers(0, 3),
        begins=st.sampled_from([None, 0, 60 * SECOND]),
        deadline=st.sampled_from([None, 700 * SECOND, 2 * HOUR]),
        urgent=st.booleans(),
    )
    def submit_with_conditions(
        self,
        kind: DependencyKind,
        data: st.DataObject,
        tasks: int,
        begins: int | None,
        deadline: int | None,
        urgent: bool,
    ) -> None:
        """Refused where the engine says so: an `aftercorr` without its task, one urgent job too many."""
        self.count += 1
        others = list(self.engine.machine.state.jobs)
        waits = kind is DependencyKind.SINGLETON or not others
        condition = Dependency(kind, data.draw(st.sampled_from(others))) if not waits else _SINGLETON
        spec = a_spec(
            f"job-{data.draw(st.integers(1, self.count))}" if waits else f"job-{self.count}",
            dependencies=(condition,),
            array=Array(tuple(range(tasks)), 2) if tasks else None,
            begin_at=None if begins is None else self.engine.now + begins,
            deadline_at=None if deadline is None else self.engine.now + deadline,
            time_limit_seconds=600,
            priority=PriorityWord.URGENT if urgent else PriorityWord.NORMAL,
        )
        self.engine.act(submit(self.engine.machine, [spec], Actor(ANN, admin=False), now=self.engine.now))

    @precondition(lambda self: self.jobs(JobState.QUEUED))
    @rule(data=st.data(), wanted=st.sampled_from([*PriorityWord, 500, SiteFactor(-40)]))
    def set_priority(self, data: st.DataObject, wanted: WantedPriority) -> None:
        job = data.draw(st.sampled_from(self.jobs(JobState.QUEUED)))
        self.engine.act(set_priority(self.engine.machine, [job], wanted, _ADMIN))

    @precondition(lambda self: self.jobs(JobState.QUEUED))
    @rule(data=st.data(), rename=st.booleans(), alone=st.booleans())
    def edit(self, data: st.DataObject, rename: bool, alone: bool) -> None:
        job = data.draw(st.sampled_from(self.jobs(JobState.QUEUED)))
        name = data.draw(st.sampled_from([f"job-{number + 1}" for number in range(self.count)]))
        spec = replace(job.spec, name=name if rename else job.spec.name)
        if alone:
            spec = replace(spec, dependencies=())
        self.engine.act(edit(self.engine.machine, job, spec, now=self.engine.now))

    @rule(minutes=st.integers(1, 30), start=st.booleans())
    def reserve(self, minutes: int, start: bool) -> None:
        begins = Millis(self.engine.now + (0 if start else 60 * SECOND))
        wanted = Reservation(
            name=f"kept-{len(self.engine.journal)}",
            nodes=(NodeName("n1"),),
            start_at=begins,
            end_at=Millis(begins + minutes * 60 * SECOND),
            maintenance=True,
        )
        self.engine.act(make_reservation(self.engine.machine, wanted, self.engine.now))

    @rule(
        multifactor=st.booleans(),
        bound=st.sampled_from([None, 1]),
        always=st.booleans(),
        mode=st.sampled_from([(), ("CANCEL",), ("REQUEUE",), ("SUSPEND", "GANG")]),
    )
    def configure(self, multifactor: bool, bound: int | None, always: bool, mode: tuple[str, ...]) -> None:
        kind = PriorityKind.MULTIFACTOR if multifactor else PriorityKind.BASIC
        flags = (PriorityFlag.ACCRUE_ALWAYS,) if always else ()
        self.engine.tell(
            events.ClusterConfigured(
                Cluster(
                    priority=Priority(kind=kind, flags=flags),
                    urgent_jobs=bound,
                    preemption=Preemption(kind="preempt/qos", mode=mode) if mode else Preemption(),
                )
            )
        )

    @rule(
        cpus=st.sampled_from([2_000, 5_000, 8_000]),
        cards=st.sampled_from([500, 2_000, 6_000]),
        jobs=st.sampled_from([1_000, 3_000]),
        kept=st.booleans(),
    )
    def apply_quota(self, cpus: int, cards: int, jobs: int, kept: bool) -> None:
        """What runs may already be more; what starts from now on may not make it so."""
        whole, most = {"cpu": 8_000, "gres/gpu": 6_000}, {"cpu": cpus, "gres/gpu": cards, JOBS: jobs}
        leaves = tuple(
            QuotaNode(name=who, min={"cpu": 2_000} if kept else {}, max=most, namespaces=(who,))
            for who in ("ann", "bob")
        )
        tree = QuotaTree("teams", QuotaNode(name="root", min=whole, max=whole, children=leaves))
        self.engine.act(apply_quota(self.engine.machine.state, tree))

    @rule()
    def schedule(self) -> None:
        self.engine.schedule()

    @precondition(lambda self: self.jobs(JobState.STARTING, JobState.RESUMING))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.jobs(JobState.STARTING, JobState.RESUMING)))
        self.engine.started(job.id)

    @precondition(lambda self: self.jobs(*_CAN_END))
    @rule(
        data=st.data(),
        status=st.sampled_from([{"code": 0}, {"code": 3}, {"signal": 9, "oom": True}, {"lost": "its shim was killed"}]),
    )
    def end(self, data: st.DataObject, status: dict[str, object]) -> None:
        job = data.draw(st.sampled_from(self.jobs(*_CAN_END)))
        rank = data.draw(st.integers(0, job.spec.nodes - 1))
        self.engine.ended(job.id, rank, **status)

    @precondition(lambda self: self.engine.machine.state.jobs)
    @rule(data=st.data(), grace=st.sampled_from([None, 0, 5]))
    def act(self, data: st.DataObject, grace: int | None) -> None:
        job = data.draw(st.sampled_from(list(self.engine.machine.state.jobs.values())))
        decisions = [
            decide.cancel(job, self.engine.now, grace),
            decide.hold(job, "ann"),
            decide.release(job),
            decide.extend_hold(job, self.engine.now, 600),
            decide.end_hold(job),
            decide.open_shell(job, 0, ()),
            evictions.suspend(job, "ann"),
            evictions.resume(self.engine.machine, job),
            evictions.requeue(self.engine.machine, job, self.engine.now, grace),
        ]
        self.engine.act(data.draw(st.sampled_from(decisions)))

    @precondition(lambda self: self.jobs(JobState.PRECHECKING))
    @rule(data=st.data(), fine=st.booleans())
    def check_nodes(self, data: st.DataObject, fine: bool) -> None:
        """One that fails its check is mended at once."""
        job = data.draw(st.sampled_from(self.jobs(JobState.PRECHECKING)))
        replica, machine = self.engine.replicas(job.id)[0], self.engine.machine
        if fine:
            self.engine.act(faults.precheck_passed(machine, replica, ""))
            return
        node = job.attempt.placement[0].node
        self.engine.act(faults.precheck_failed(machine, replica, node, "no card", self.engine.now))
        self.engine.act(service.resume(machine, node, "ann"))

    @rule(ms=st.sampled_from([1, SECOND, 30 * SECOND, 600 * SECOND, 4 * HOUR]))
    def pass_time(self, ms: int) -> None:
        self.engine.pass_time(ms)

    @rule()
    def restart(self) -> None:
        """A restored snapshot continues as if nothing had happened."""
        encoded = msgspec.msgpack.encode(self.engine.machine.state)
        self.engine.machine = Machine(msgspec.msgpack.decode(encoded, type=ClusterState))
        self.engine.plan = None

    @invariant()
    def what_waits_is_told(self) -> None:
        """Nobody waits for what has ended already."""
        machine = self.engine.machine
        for job in machine.queue.values():
            for condition in job.waits_for if job.never is None else ():
                fate = DependencyOutcomes().of(machine, condition)
                assert condition.kind is DependencyKind.SINGLETON or verdict(condition, fate) is None

    @invariant()
    def attempts_are_neither_lost_nor_doubled(self) -> None:
        """Every placement of a job is one of its attempts, in their order."""
        placed: dict[int, list[int]] = {}
        for record in self.engine.journal:
            if isinstance(record.body, events.JobPlaced):
                placed.setdefault(record.body.job, []).append(record.body.attempt)
        for job in self.engine.machine.state.jobs.values():
            known = [*job.earlier, *([job.attempt] if job.attempt is not None else [])]
            assert [each.number for each in known] == placed.get(job.id, [])

    @invariant()
    def journal_replays_to_the_same_state(self) -> None:
        if len(self.engine.journal) % 8:
            return
        replayed = ClusterState()
        for record in self.engine.journal:
            decoded = msgspec.json.decode(msgspec.json.encode(record), type=EventRecord)
            apply(replayed, decoded)
        assert replayed == self.engine.machine.state


TestEngineMachine = pytest.mark.req("TR-02", "TR-01", "JT-31")(EngineMachine.TestCase)
TestEngineMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
