"""Anything people, containers and the clock may do, in any order: the promises hold after every event.

`EngineDriver.tell` checks all invariants after each event; the rules here only choose what happens next.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cockpit.engine import decide
from cockpit.engine.apply import apply
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.model.events import EventRecord
from cockpit.model.job import Job, JobState
from cockpit.model.spec import DebugHold, HoldCards
from tests.builders import HOUR, SECOND, a_card, a_node, a_spec
from tests.engine.driver import EngineDriver

_CARDS = st.sampled_from([0, 250, 300, 500, 1000, 2000, 4000])


class EngineMachine(RuleBasedStateMachine):
    """Two nodes: one with whole cards, one whose cards are sliced in four."""

    def __init__(self) -> None:
        super().__init__()
        sliced = tuple(a_card(index, slices=4) for index in range(2))
        self.engine = EngineDriver(a_node("n1", cpus=4, cards=4), a_node("n2", cpus=4, card_list=sliced))
        self.count = 0

    def jobs(self, *states: JobState) -> list[Job]:
        return [job for job in self.engine.machine.state.jobs.values() if job.state in states]

    @rule(cards=_CARDS, nodes=st.integers(1, 2), hold=st.booleans(), keep=st.booleans(), cpus=st.integers(1, 4))
    def submit(self, cards: int, nodes: int, hold: bool, keep: bool, cpus: int) -> None:
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
                time_limit_seconds=600,
                debug_hold=DebugHold(cards=cards_mode),
            )
        )

    @rule()
    def schedule(self) -> None:
        self.engine.schedule()

    @precondition(lambda self: self.jobs(JobState.STARTING))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.jobs(JobState.STARTING)))
        self.engine.started(job.id)

    @precondition(lambda self: self.jobs(JobState.RUNNING, JobState.STARTING))
    @rule(
        data=st.data(),
        status=st.sampled_from([{"code": 0}, {"code": 3}, {"signal": 9, "oom": True}, {"lost": "its shim was killed"}]),
    )
    def end(self, data: st.DataObject, status: dict[str, object]) -> None:
        job = data.draw(st.sampled_from(self.jobs(JobState.RUNNING, JobState.STARTING)))
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
        ]
        self.engine.act(data.draw(st.sampled_from(decisions)))

    @rule(ms=st.sampled_from([1, SECOND, 30 * SECOND, 600 * SECOND, 4 * HOUR]))
    def pass_time(self, ms: int) -> None:
        self.engine.pass_time(ms)

    @rule()
    def restart(self) -> None:
        """A snapshot, restored, goes on as if nothing had happened."""
        encoded = msgspec.msgpack.encode(self.engine.machine.state)
        self.engine.machine = Machine(msgspec.msgpack.decode(encoded, type=ClusterState))
        self.engine.plan = None

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
TestEngineMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
