"""Jobs whose replicas differ: all of them fit at once, each on a node of its own, or none starts."""

from __future__ import annotations

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.submission.submit import submit
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.reasons import NeverFits, Reason, Resource
from cockpit.model.spec import PARAMETER_SERVER, Mode, NodeSpec, WorkerPool
from cockpit.present.job.page import asked_for
from cockpit.sched.feasible import never_fits
from tests.builders import ANN, a_node, a_spec
from tests.engine.driver import EngineDriver

CARDS, PLAIN = NodeSpec(cpus=4, card_milli=2000), NodeSpec(cpus=8)


def pools(*replicas: int) -> tuple[WorkerPool, ...]:
    kinds = (CARDS, CARDS, PLAIN)
    return tuple(WorkerPool(replicas=count, spec=spec) for count, spec in zip(replicas, kinds, strict=False))


def pool_job(*replicas: int, name: str = "pools"):
    return a_spec(name, mode=Mode.WORKER_POOLS, worker_pools=pools(*replicas), specs=(CARDS,))


def reason_of(engine: EngineDriver, job: JobId) -> Reason:
    return engine.plan.refusals.reason(engine.job(job), "")


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(
        a_node("c1", cards=2, cpus=4), a_node("c2", cards=2, cpus=4), a_node("p1", cpus=8), a_node("p2", cpus=8)
    )


@pytest.mark.req("LA-60", "SC-08")
def test_each_pool_is_placed_where_it_fits(engine: EngineDriver) -> None:
    (job,) = engine.run(pool_job(1, 1, 2))
    placement = engine.job(job).attempt.placement
    assert [(part.rank, part.node, part.cpus, len(part.slices)) for part in placement] == [
        (0, "c1", 4, 2),
        (1, "c2", 4, 2),
        (2, "p1", 8, 0),
        (3, "p2", 8, 0),
    ]


@pytest.mark.req("LA-60", "SC-08")
def test_all_pools_start_or_none_and_the_reason_is_that_of_the_missing_pool(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("first", specs=(NodeSpec(cpus=8),)))
    (job,) = engine.submit(pool_job(1, 1, 2))
    engine.schedule()
    assert engine.job(job).attempt is None
    reason = reason_of(engine, job)
    assert (reason.resource, reason.wanted, reason.nodes_wanted) == (Resource.CPUS, 8, 2)
    engine.ended(first, code=0)
    engine.schedule()
    assert engine.job(job).state is JobState.STARTING


@pytest.mark.req("LA-60")
def test_the_job_details_show_the_request_of_every_pool(engine: EngineDriver) -> None:
    (job,) = engine.submit(pool_job(1, 1, 2))
    assert asked_for(engine.job(job)) == (
        "1 node with 4 CPUs, 1G and 2 cards; 1 node with 4 CPUs, 1G and 2 cards; 2 nodes with 8 CPUs and 1G"
    )


@pytest.mark.req("JT-15")
def test_parameter_servers_have_one_size(engine: EngineDriver) -> None:
    spec = a_spec(mode=Mode.TENSORFLOW, nodes=2, parameter_servers=2, specs=(CARDS,))
    (job,) = engine.run(spec)
    parts = engine.job(job).attempt.placement
    assert [(part.cpus, part.memory_mib, part.card_milli) for part in parts[2:]] == [(1, 1024, 0)] * 2
    assert NodeSpec(cpus=1, memory_mib=1024) == PARAMETER_SERVER
    engine.ended(job, 0, code=0)
    assert engine.job(job).ending is None
    engine.ended(job, 1, code=0)
    for rank in (2, 3):
        engine.ended(job, rank, signal=15)
    assert engine.job(job).state is JobState.SUCCEEDED


@pytest.mark.req("LA-60")
def test_the_job_ends_with_its_primary(engine: EngineDriver) -> None:
    (job,) = engine.run(pool_job(1, 1, 1))
    engine.ended(job, 1, code=3)
    assert engine.job(job).ending is None
    engine.ended(job, 0, code=0)
    assert engine.job(job).ending is not None
    engine.ended(job, 2, signal=15)
    assert (engine.job(job).state, engine.job(job).exit.code) == (JobState.SUCCEEDED, 0)


@pytest.mark.req("LA-60")
@pytest.mark.parametrize("replicas", [(1, 2), (1, 1, 3)])
def test_a_mixed_gang_that_never_fits_is_refused(engine: EngineDriver, replicas: tuple[int, ...]) -> None:
    assert isinstance(never_fits(pool_job(*replicas), engine.machine.state.nodes), NeverFits)
    refused = submit(engine.machine, [pool_job(*replicas)], Actor(ANN, admin=False), now=engine.now)
    assert refused.reasons


@pytest.mark.req("LA-60", "JT-15", "JT-27")
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"mode": Mode.WORKER_POOLS}, "worker_pools"),
        ({"worker_pools": pools(1)}, "worker_pools"),
        ({"worker_pools": pools(2), "mode": Mode.WORKER_POOLS}, "worker_pools[0].replicas"),
        ({"worker_pools": pools(1), "mode": Mode.WORKER_POOLS, "nodes": 2}, "nodes"),
        ({"parameter_servers": 1}, "parameter_servers"),
    ],
)
def test_invalid_pools_and_parameter_servers_are_refused(
    engine: EngineDriver, fields: dict[str, object], path: str
) -> None:
    spec = a_spec(**{"specs": (CARDS,), **fields})
    refused = submit(engine.machine, [spec], Actor(ANN, admin=False), now=engine.now)
    assert refused.message.startswith(f"{path}: ")
