"""An engine under rules that change while people submit, hold, edit and end: after every event its promises hold, and
every plan is that of a scheduler that counts everything anew from the engine's state."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.apply.events import apply
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import edit, submit
from cockpit.model import events
from cockpit.model.accounts import Usage
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import OCCUPYING, Job, JobState, Submitter
from cockpit.model.spec import Array, Dependency, DependencyKind
from cockpit.sched.cycle import cycle
from cockpit.sched.equivalence import partitions_of
from cockpit.sched.policy import Policy
from cockpit.sched.priority.share_tree import ShareTree, fair_tree
from tests.builders import SECOND
from tests.engine.driver import EngineDriver
from tests.sched.naive_plan import NaiveEasy
from tests.sched.naive_rules import NaiveRules
from tests.sched.ruled_worlds import some_accounts, some_cluster, some_node, some_reservations, some_spec

USERS = {
    name: Submitter(UserName(name), uid, uid, (uid,), f"/home/{name}") for uid, name in enumerate(("ann", "bob", "cyd"))
}
SEEDS = st.integers(0, 2**32)


class RuledEngine(RuleBasedStateMachine):
    """Three nodes, three users with accounts, one cluster file after the other."""

    def __init__(self) -> None:
        super().__init__()
        random = Random(1)
        self.engine = EngineDriver(*(some_node(random, name) for name in ("n1", "n2", "n3")))
        self.count = 0
        self.configure(random)

    @property
    def machine(self) -> Machine:
        return self.engine.machine

    def jobs(self, *states: JobState) -> list[Job]:
        return [job for job in self.machine.state.jobs.values() if job.state in states]

    @rule(seed=SEEDS)
    def submit_some(self, seed: int) -> None:
        random = Random(seed)
        for _ in range(random.choice((1, 3, 5))):
            self.submit(random)

    def submit(self, random: Random) -> None:
        self.count += 1
        state = self.machine.state
        spec = some_spec(random, self.engine.now, list(state.reservations))
        partitions = [each.name for each in state.cluster.partitions]
        spec = replace(
            spec,
            name="again" if random.random() < 0.1 else f"job-{self.count}",
            account=random.choice((None, None, None, "lab")),
            qos=random.choice((None, None, None, "high", "low")),
            partitions=tuple(random.sample(partitions, random.choice((0, 1, len(partitions))))) if partitions else (),
            hold=random.random() < 0.1,
            array=Array((0, 1, 5), random.choice((0, 1, 2))) if random.random() < 0.25 else None,
            dependencies=self.some_conditions(random),
            deadline_at=Millis(self.engine.now + random.choice((6, 30)) * SECOND) if random.random() < 0.1 else None,
            terminal=random.random() < 0.3,
        )
        who = USERS[random.choice(sorted(USERS))]
        self.engine.act(submit(self.machine, [spec], Actor(who, admin=True), now=self.engine.now))

    def some_conditions(self, random: Random) -> tuple[Dependency, ...]:
        if random.random() < 0.7:
            return ()
        kind = random.choice(list(DependencyKind))
        known = [JobId(0)] if kind is DependencyKind.SINGLETON else list(self.machine.state.jobs)
        return (Dependency(kind, random.choice(known)),) if known else ()

    @rule()
    def schedule(self) -> None:
        plan = self.plan_from_what_is_kept()
        naive = NaiveEasy(self.as_world(), self.naive_rules(), backfill=True)
        assert [(each.job, each.spec_index, each.placement, each.partition) for each in plan.starts] == naive.starts
        reserved = plan.reservation
        promised = reserved and (reserved.job, reserved.reserved_at, reserved.spec_index, reserved.placement)
        assert promised == naive.reservation
        self.engine.schedule()
        started = [start.job for start in plan.starts]
        self.no_limit_is_exceeded(started[-1:])
        for job in started[:-1]:
            self.engine.started(job)

    def plan_from_what_is_kept(self):
        """The next plan, from the indices of the last one; those made from nothing give the same."""
        last, snapshot = self.engine.plan, self.machine.peek(self.engine.now)
        anew = cycle(snapshot, None, Policy())
        kept = cycle(snapshot, last.index, Policy(), last.priorities) if last else anew
        assert (kept.starts, kept.reservations, kept.order) == (anew.starts, anew.reservations, anew.order)
        assert self.told(kept) == self.told(anew)
        assert list(kept.priorities.order) == list(anew.priorities.order)
        assert (kept.index.nodes_free, kept.index.placed, kept.index.departures) == (
            anew.index.nodes_free,
            anew.index.placed,
            anew.index.departures,
        )
        assert kept.index.counters.used == anew.index.counters.used
        return kept

    def told(self, plan):
        queue = self.machine.peek(self.engine.now).queue
        return {(job.id, each): plan.refusals.reason(job, each) for job in queue for each in partitions_of(job)}

    def as_world(self) -> SimpleNamespace:
        seen = self.machine.peek(self.engine.now)
        names = ("cluster", "accounts", "reservations", "usage", "qos_usage")
        rules = {name: getattr(seen, name) for name in names}
        return SimpleNamespace(
            now=seen.now, nodes=seen.nodes, queue=seen.queue, jobs=seen.jobs, occupied=seen.occupied, ends=seen.ends,
            usage_at=seen.usage_at, rules=rules,
        )  # fmt: skip

    def naive_rules(self) -> NaiveRules:
        state = self.machine.state
        return NaiveRules(self.as_world(), fair_tree(ShareTree(state.accounts), state.usage))

    def no_limit_is_exceeded(self, started: list[JobId]) -> None:
        """Of those that bind what started last: what ran before may run on beyond a limit that was lowered, and a job
        that a limit of its QOS binds is not bound by its account's."""
        rules = self.naive_rules()
        for job_id in started:
            job = self.machine.state.jobs[job_id]
            name = job.attempt.partition
            if (own := rules.bound_by(job, name)) is not None:
                for resource, most, who in rules.running_limits(job, name, own):
                    assert rules.in_use(resource, who) <= most + 1e-9

    @precondition(lambda self: self.jobs(JobState.STARTING))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.engine.started(data.draw(st.sampled_from(self.jobs(JobState.STARTING))).id)

    @precondition(lambda self: self.jobs(*OCCUPYING))
    @rule(data=st.data(), code=st.sampled_from([0, 0, 3]))
    def end(self, data: st.DataObject, code: int) -> None:
        job = data.draw(st.sampled_from(self.jobs(*OCCUPYING)))
        for rank in range(job.spec.nodes):
            self.engine.ended(job.id, rank, code=code)

    @precondition(lambda self: self.machine.state.jobs)
    @rule(seed=SEEDS)
    def act(self, seed: int) -> None:
        random = Random(seed)
        job = random.choice(list(self.machine.state.jobs.values()))
        other = replace(job.spec, time_limit_seconds=random.choice((1, 6)), nice=random.choice((0, 50)))
        queued = job.state is JobState.QUEUED
        decisions = [
            decide.hold(job, "root"),
            decide.release(job),
            decide.cancel(job, self.engine.now, random.choice((None, 0))),
            edit(self.machine, job, other, now=self.engine.now),
            decide.end_hold(job),
            [events.PrioritySet(job.id, random.choice((None, 7_000)))] if queued else [],
            [events.SiteFactorSet(job.id, 90)] if queued else [],
        ]
        self.engine.act(random.choice(decisions))

    def configure(self, random: Random) -> None:
        accounts = some_accounts(random)
        self.engine.tell(
            events.ClusterConfigured(some_cluster(random)),
            events.AccountsChanged(tuple(accounts.associations.values()), tuple(accounts.qos.values())),
        )

    def reserve(self, random: Random) -> None:
        for each in some_reservations(random, self.engine.now).values():
            self.engine.tell(events.ReservationMade(each))

    def change_nodes(self, random: Random) -> None:
        used = {part.node for placement in self.machine.occupied.values() for part in placement}
        nodes = [node if name in used else some_node(random, name) for name, node in self.machine.state.nodes.items()]
        self.engine.act(decide.nodes_changed(self.machine, nodes))

    @rule(seconds=st.sampled_from([1, 1, 2, 5, 400, 4000]))
    def pass_time(self, seconds: int) -> None:
        self.engine.pass_time(seconds * SECOND)

    @rule(seed=SEEDS)
    def upheave(self, seed: int) -> None:
        random = Random(seed)
        random.choice((self.configure, self.reserve, self.change_nodes, self.restart))(random)

    def restart(self, _: Random) -> None:
        """A restored snapshot continues as if nothing had happened."""
        encoded = msgspec.msgpack.encode(self.machine.state)
        self.engine.machine = Machine(msgspec.msgpack.decode(encoded, type=ClusterState))
        self.engine.plan = None

    @invariant()
    def what_is_kept_beside_the_state_follows_from_it(self) -> None:
        live, anew = self.machine.peek(self.engine.now), Machine(self.machine.state).peek(self.engine.now)
        assert (list(live.queue), dict(live.occupied), dict(live.ends)) == (
            list(anew.queue),
            dict(anew.occupied),
            dict(anew.ends),
        )
        assert self.machine.next_at == Machine(self.machine.state).next_at

    @invariant()
    def usage_is_conserved_up_the_tree(self) -> None:
        state, nothing = self.machine.state, Usage()
        for account, below in state.accounts.children.items():
            used = state.usage.get(f"{account}/", nothing).raw
            assert used == pytest.approx(sum(state.usage.get(each.key, nothing).raw for each in below))

    @invariant()
    def no_array_has_more_tasks_running_than_it_may(self) -> None:
        running = Counter(job.array.array for job in self.jobs(*OCCUPYING) if job.array)
        for job in self.jobs(*OCCUPYING):
            if job.array and job.array.at_once:
                assert running[job.array.array] <= job.array.at_once

    @invariant()
    def the_journal_replays_to_the_same_state(self) -> None:
        if len(self.engine.journal) % 8:
            return
        replayed = ClusterState()
        for record in self.engine.journal:
            apply(replayed, msgspec.json.decode(msgspec.json.encode(record), type=events.EventRecord))
        assert replayed == self.machine.state


TestRuledEngine = pytest.mark.req("SC-03", "SC-10", "SC-14")(RuledEngine.TestCase)
TestRuledEngine.settings = settings(
    max_examples=int(os.environ.get("COCKPIT_EXAMPLES", "60")),
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
