from __future__ import annotations

import pytest

from cockpit.engine.configure import apply_quota
from cockpit.engine.invariants import violations
from cockpit.model import events
from cockpit.model.node import Allocation
from cockpit.model.quota import JOBS, QuotaNode, QuotaTree
from tests.builders import a_node, a_spec
from tests.engine.driver import EngineDriver

ROOT = {"cpu": 8_000}


def an_engine(**most: int) -> EngineDriver:
    engine = EngineDriver(a_node(cpus=8))
    leaf = QuotaNode(name="a", max=most, namespaces=("ann",))
    tree = QuotaTree("teams", QuotaNode(name="root", min=ROOT, max=ROOT, children=(leaf,)))
    engine.act(apply_quota(engine.machine.state, tree))
    return engine


@pytest.mark.req("TR-02", "SC-07")
@pytest.mark.parametrize(
    ("most", "told"), [({"cpu": 4_000}, "5000 thousandths of cpu"), ({JOBS: 1_000}, "2000 thousandths of jobs")]
)
def test_a_placement_beyond_a_quotas_maximum_violates_an_invariant(most: dict[str, int], told: str) -> None:
    engine = an_engine(**most)
    first, second = engine.submit(a_spec("first", cpus=3), a_spec("second", cpus=2))
    node = next(iter(engine.machine.state.nodes))
    engine.tell(events.JobPlaced(first, 1, 0, (Allocation(0, node, 3, 256),)))
    body = events.JobPlaced(second, 1, 0, (Allocation(0, node, 2, 256),))
    engine.machine.handle(events.EventRecord(seq=99, at=engine.now, actor="test", origin="test", body=body))
    (broken,) = violations(engine.machine, body)
    assert broken.startswith(f"job 2: quota root/a has {told}")


def test_a_maximum_lowered_below_the_running_jobs_violates_no_invariant() -> None:
    engine = an_engine(cpu=8_000)
    engine.run(a_spec("first", cpus=6))
    leaf = QuotaNode(name="a", max={"cpu": 1_000}, namespaces=("ann",))
    tree = QuotaTree("teams", QuotaNode(name="root", min=ROOT, max=ROOT, children=(leaf,)))
    engine.act(apply_quota(engine.machine.state, tree))
    assert violations(engine.machine) == []


@pytest.mark.req("TR-02")
def test_a_collection_that_differs_from_a_recount_violates_an_invariant() -> None:
    """What was noted for a job is taken back behind the machine's back, collection by collection."""
    engine = an_engine(cpu=8_000)
    (running,) = engine.run(a_spec("running", cpus=6))
    (waiting,) = engine.submit(a_spec("waiting", cpus=6))
    machine = engine.machine
    assert violations(machine) == []
    machine.timers.forget(running)
    assert [each for each in violations(machine) if "recount" in each] == ["the timers differ from a recount"]
    del machine._queue[waiting]
    assert "the queue differs from a recount" in violations(machine)
    del machine._occupied[running]
    assert "the occupied resources differ from a recount" in violations(machine)
