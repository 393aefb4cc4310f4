"""What worker pools and parameter servers exclude."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.rules.spec import spec_errors
from cockpit.model.spec import MOST_HELPERS, Elastic, JobSpec, Mode, NodeSpec, WorkerPool

GOOD = JobSpec(name="train", command="/workspace/algorithm/t.sh", output="/data/out")
ELASTIC = Elastic(workers=1, max_workers=2)


def with_pools(*replicas: int) -> JobSpec:
    pools = tuple(WorkerPool(replicas=each) for each in replicas)
    return replace(GOOD, mode=Mode.WORKER_POOLS, worker_pools=pools, specs=(pools[0].spec,))


WITH_SERVERS = replace(GOOD, mode=Mode.TENSORFLOW, parameter_servers=2)


@pytest.mark.req("LA-60")
@pytest.mark.parametrize("spec", [GOOD, with_pools(1), with_pools(1, 3), WITH_SERVERS])
def test_worker_pools_or_parameter_servers_alone_are_valid(spec: JobSpec) -> None:
    assert spec_errors(spec) == []


@pytest.mark.req("LA-60")
@pytest.mark.parametrize("spec", [with_pools(1), with_pools(1, 3), WITH_SERVERS])
def test_pools_and_servers_exclude_elastic_jobs_and_division_over_clusters(spec: JobSpec) -> None:
    path = "worker_pools" if spec.worker_pools else "parameter_servers"
    assert f"{path}: cannot be used with elastic; remove one" in spec_errors(replace(spec, elastic=ELASTIC))
    divided = replace(spec, divide_over_clusters=True)
    assert f"{path}: cannot be used with divide_over_clusters; remove one" in spec_errors(divided)


@pytest.mark.req("LA-60")
def test_the_first_pool_has_one_replica_and_its_own_request() -> None:
    assert any("first pool is the primary alone" in error for error in spec_errors(with_pools(2)))
    other = replace(with_pools(1), specs=(NodeSpec(cpus=7),))
    assert any(error.startswith("specs: cannot be used with worker_pools") for error in spec_errors(other))


@pytest.mark.req("TR-09")
@pytest.mark.parametrize("number", [10**9, 1 << 62, (1 << 64) - 1])
def test_billions_of_replicas_are_refused_without_being_listed(number: int) -> None:
    """Anyone may send such a request, and the engine answers others meanwhile."""
    for spec in (replace(WITH_SERVERS, parameter_servers=number), with_pools(1, number, number)):
        assert any(f"come to {spec.helper_count} replicas" in error for error in spec_errors(spec))
        assert len(spec.helpers) == MOST_HELPERS


def reducing(workers: int, servers: int, image: str = "us/vertex-ai-restricted/training/reductionserver:1") -> JobSpec:
    """A primary and a pool of workers with so many cards, and a third pool of servers."""
    pool = WorkerPool(replicas=1, spec=NodeSpec(card_milli=1000 * workers))
    helpers = WorkerPool(replicas=2, image=image, spec=NodeSpec(card_milli=1000 * servers))
    return replace(GOOD, mode=Mode.WORKER_POOLS, worker_pools=(pool, pool, helpers), specs=(pool.spec,))


@pytest.mark.req("LA-60")
def test_reduction_servers_have_no_cards_and_serve_workers_that_have_some() -> None:
    def about_cards(spec: JobSpec) -> list[str]:
        return [error.partition(":")[0] for error in spec_errors(spec) if "spec.cards" in error]

    assert about_cards(reducing(workers=1, servers=0)) == []
    assert about_cards(reducing(workers=1, servers=1)) == ["worker_pools[2].spec.cards"]
    assert about_cards(reducing(workers=0, servers=0)) == ["worker_pools[0].spec.cards", "worker_pools[1].spec.cards"]
    assert about_cards(reducing(workers=0, servers=1, image="registry/other:1")) == []
