"""A queue reclaims its guaranteed resources, event by event: the borrowing job is notified, ends and waits again, and
both jobs show why."""

from __future__ import annotations

import pytest

from cockpit.engine.configure import apply_quota
from cockpit.engine.views.queues import queues_shown
from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.job import JobState
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.reasons import EvictionPending, QuotaFull
from cockpit.sched.explain import reason_of
from tests.builders import BOB, a_node, a_spec
from tests.engine.driver import EngineDriver

WHOLE = {"cpu": 8_000}
TREE = QuotaTree(
    "teams",
    QuotaNode(
        name="root",
        min=WHOLE,
        max=WHOLE,
        children=(
            QuotaNode(name="a", min={"cpu": 4_000}, namespaces=("ann",)),
            QuotaNode(name="b", min={"cpu": 4_000}, namespaces=("bob",)),
        ),
    ),
)


@pytest.mark.req("SC-07", "FL-02", "SC-08")
def test_quota_is_lent_to_another_queue_and_reclaimed() -> None:
    engine = EngineDriver(a_node(cpus=8))
    engine.act(apply_quota(engine.machine.state, TREE))
    own, borrowed = engine.run(a_spec("own", cpus=4), a_spec("more", cpus=4))
    assert engine.job(borrowed).state is JobState.RUNNING
    engine.now = type(engine.now)(engine.now + 1000)
    (lender,) = engine.submit(a_spec("lender", cpus=4), by=BOB)
    engine.schedule()
    ending = engine.job(borrowed).ending
    assert ending is not None
    assert (ending.for_job, ending.grounds, ending.requeue) == (lender, Grounds.QUOTA, True)
    assert ending.kill_at == engine.now + 1000 * engine.job(borrowed).spec.grace_seconds
    assert reason_of(engine.plan, engine.job(lender)) == EvictionPending((borrowed,), ending.kill_at)
    engine.schedule()
    assert sum(isinstance(record.body, events.EndingBegan) for record in engine.journal) == 1
    engine.ended(borrowed, signal=15)
    requeued = engine.job(borrowed)
    assert (requeued.state, requeued.attempt.cause) == (JobState.QUEUED, EndCause.PREEMPTED)
    engine.schedule()
    engine.started(lender)
    assert engine.job(lender).state is JobState.RUNNING
    assert engine.job(own).state is JobState.RUNNING
    assert reason_of(engine.plan, engine.job(borrowed)) == QuotaFull("root", "cpu", 8, 8, 4)
    rows = {row.path: row for row in queues_shown(engine.machine, admin=True).rows}
    assert [rows[path].used["cpu"] for path in ("root", "root/a", "root/b")] == [8_000, 4_000, 4_000]
