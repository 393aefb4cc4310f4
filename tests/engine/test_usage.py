"""What jobs use is written to the accounts by the journal's events alone, and orders the queue."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.engine.apply.events import apply
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import edit
from cockpit.model import events
from cockpit.model.accounts import Association, assoc_key
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityFlag, PriorityKind, UsageReset, Weights
from cockpit.model.ids import JobId
from cockpit.sched.priority.priorities import prioritised
from tests.builders import ANN, BOB, MINUTE, SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver

pytestmark = pytest.mark.req("SC-02")

PRIORITY = Priority(
    kind=PriorityKind.MULTIFACTOR, weights=Weights(fairshare=1000), decay_half_life_seconds=0, calc_period_seconds=60
)
GPU = Partition(name="gpu", billing_weights={"cpu": 1.0, "gres/gpu": 10.0})
ACCOUNTS = (
    Association(account="lab", parent="root"),
    Association(account="team", parent="lab"),
    Association(account="other", parent="root"),
    Association(account="team", user="ann", default=True),
    Association(account="lab", user="bob", default=True),
)


@pytest.fixture
def engine() -> EngineDriver:
    engine = EngineDriver(a_node(cpus=4, cards=4))
    cluster = Cluster(partitions=(GPU,), priority=PRIORITY)
    engine.tell(events.ClusterConfigured(cluster), events.AccountsChanged(ACCOUNTS))
    engine.pass_time(0)
    return engine


def raw(engine: EngineDriver) -> dict[str, float]:
    return {key: round(each.raw, 6) for key, each in engine.machine.state.usage.items()}


@pytest.mark.req("SC-01", "SC-02")
@pytest.mark.parametrize("flags", [(PriorityFlag.INCREMENT_ONLY,), ()])
def test_under_increment_only_a_priority_outlasts_use_and_a_restart(
    engine: EngineDriver, flags: tuple[PriorityFlag, ...]
):
    engine.tell(events.ClusterConfigured(Cluster(partitions=(GPU,), priority=replace(PRIORITY, flags=flags))))
    engine.run(a_spec(cpus=4))
    waiting, edited = engine.submit(a_spec("waiting", cpus=4), a_spec("edited", cpus=4))

    def priority(machine: Machine, job: JobId) -> int:
        return prioritised(machine.peek(engine.now)).breakdown(machine.state.jobs[job], "gpu").total

    before = priority(engine.machine, waiting)
    for _ in range(3):
        engine.pass_time(MINUTE)
    engine.act(edit(engine.machine, engine.job(edited), a_spec("edited", cpus=4, nice=1)))
    again = Machine(msgspec.json.decode(msgspec.json.encode(engine.machine.state), type=ClusterState))
    for machine in (engine.machine, again):
        assert (priority(machine, waiting) == before) is bool(flags)
        assert priority(machine, edited) < before
    restarted = ClusterState()
    for record in engine.journal:
        apply(restarted, record)
    assert restarted.highest == engine.machine.state.highest
    assert bool(restarted.highest) is bool(flags)
    engine.tell(events.ClusterConfigured(Cluster(partitions=(GPU,), priority=PRIORITY)))
    assert not engine.machine.state.highest


def test_a_job_is_charged_for_all_its_time_at_its_end(engine: EngineDriver):
    (job,) = engine.run(a_spec(cpus=2, card_milli=1000))
    engine.now = engine.now + 30 * SECOND
    engine.ended(job, code=0)
    assert raw(engine) == {"team/ann": 360.0, "team/": 360.0, "lab/": 360.0, "root/": 360.0}


def test_passes_and_the_end_share_the_time_between_them(engine: EngineDriver):
    (job,) = engine.run(a_spec(cpus=2, card_milli=1000))
    for _ in range(3):
        engine.pass_time(MINUTE)
    assert raw(engine)["team/ann"] == 12 * 180
    engine.now = engine.now + 10 * SECOND
    engine.ended(job, code=0)
    engine.pass_time(MINUTE)
    assert raw(engine)["team/ann"] == 12 * 190


def test_replaying_the_journal_gives_the_same_usage(engine: EngineDriver):
    (job,) = engine.run(a_spec(cpus=3))
    engine.pass_time(7 * MINUTE)
    engine.ended(job, code=1)
    again = Machine(ClusterState())
    for record in engine.journal:
        again.handle(record)
    assert again.state == engine.machine.state


def test_usage_orders_the_queue_at_once(engine: EngineDriver):
    (heavy,) = engine.run(a_spec("all", cpus=4))
    (anns,) = engine.submit(a_spec("anns", cpus=4))
    (bobs,) = engine.submit(a_spec("bobs", cpus=4), by=BOB)
    engine.schedule()
    assert engine.plan.order == (anns, bobs)  # nobody has used anything
    engine.now = engine.now + MINUTE
    engine.ended(heavy, code=0)
    engine.schedule()
    assert engine.plan.order == (bobs, anns)
    assert [start.job for start in engine.plan.starts] == [bobs]


@pytest.mark.req("SC-01")
def test_usage_added_by_an_administrator_counts(engine: EngineDriver):
    engine.run(a_spec("all", cpus=4))
    first, second = engine.submit(a_spec("first", cpus=4), a_spec("second", cpus=4))
    engine.tell(events.SiteFactorSet(second, 50))
    engine.schedule()
    assert engine.plan.order == (second, first)
    assert engine.plan.priorities.breakdown(engine.job(second), "gpu").parts[0].contribution == 50


@pytest.mark.req("SC-14")
def test_an_updated_priority_table_equals_a_new_one(engine: EngineDriver):
    """After a day of work: what was made from change to change is what is made from nothing."""
    for number in range(12):
        engine.submit(a_spec(f"a{number}", cpus=number % 4 + 1), by=(ANN, BOB)[number % 2])
        engine.schedule()
        for job in [each.job for each in engine.plan.starts]:
            engine.started(job)
            engine.pass_time(MINUTE)
            engine.ended(job, code=0)
        anew = prioritised(engine.machine.peek(engine.now))
        kept = prioritised(engine.machine.peek(engine.now), engine.plan.priorities)
        assert list(kept.order) == list(anew.order)
        assert [kept.breakdown(*each) for each in kept.order] == [anew.breakdown(*each) for each in anew.order]


class TestReset:
    def configure(self, engine: EngineDriver, period: UsageReset) -> None:
        (job,) = engine.run(a_spec(cpus=4))
        engine.pass_time(MINUTE)
        engine.ended(job, code=0)
        assert raw(engine)["root/"] == 240
        priority = Priority(kind=PriorityKind.MULTIFACTOR, usage_reset=period, calc_period_seconds=60)
        engine.tell(events.ClusterConfigured(Cluster(partitions=(GPU,), priority=priority)))
        engine.pass_time(MINUTE)

    def test_reset_now_clears_the_usage_once(self, engine: EngineDriver):
        self.configure(engine, UsageReset.NOW)
        assert raw(engine) == {}
        (job,) = engine.run(a_spec("next"))
        engine.pass_time(MINUTE)
        engine.pass_time(MINUTE)
        assert raw(engine)["root/"] > 100
        engine.ended(job, code=0)

    def test_a_reset_period_keeps_the_usage_until_it_is_over(self, engine: EngineDriver):
        self.configure(engine, UsageReset.MONTHLY)
        assert raw(engine)["root/"] > 230


class TestTree:
    def used(self, engine: EngineDriver) -> None:
        anns, bobs = engine.run(a_spec("anns")), engine.submit(a_spec("bobs", cpus=2), by=BOB)
        engine.schedule()
        engine.started(bobs[0])
        engine.pass_time(MINUTE)
        for job in (*anns, *bobs):
            engine.ended(job, code=0)

    def test_a_moved_account_keeps_its_usage(self, engine: EngineDriver):
        self.used(engine)
        engine.tell(events.AccountsChanged((Association(account="team", parent="other"),)))
        assert raw(engine) == {
            "team/ann": 60, "team/": 60, "other/": 60, "lab/bob": 120, "lab/": 120, "root/": 180,
        }  # fmt: skip

    def test_usage_of_a_removed_user_stays_with_the_account(self, engine: EngineDriver):
        self.used(engine)
        engine.tell(events.AccountsChanged(removed_associations=(assoc_key("team", "ann"),)))
        assert raw(engine) == {"team/": 60, "lab/bob": 120, "lab/": 180, "root/": 180}

    def test_other_changes_change_no_usage(self, engine: EngineDriver):
        self.used(engine)
        before = engine.machine.state.usage
        engine.tell(events.AccountsChanged((Association(account="team", parent="lab", shares=5),)))
        assert engine.machine.state.usage is before
