from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.plan import IMAGES, advice, bandwidth, reducers
from cockpit.model.rules.conflicts import conflict_errors
from cockpit.model.spec import JobSpec, Mode, NodeSpec, WorkerPool
from tests.builders import a_spec

V100 = NodeSpec(cpus=96, card_milli=8000, card_models=("NVIDIA_TESLA_V100",))
WORKER = WorkerPool(replicas=1, spec=V100, machine_type="n1-highmem-96")
REDUCER = WorkerPool(replicas=16, spec=NodeSpec(cpus=16), machine_type="n1-highcpu-16", image=IMAGES[0])


def job(*pools: WorkerPool, **fields: object) -> JobSpec:
    return a_spec(mode=Mode.WORKER_POOLS, worker_pools=pools, specs=(pools[0].spec,), **fields)


@pytest.mark.req("LA-64")
def test_the_sums_of_the_source() -> None:
    assert reducers(5, 100, 32) == 16
    assert reducers(8, 100, 32) == 25
    assert (bandwidth(WORKER), bandwidth(REDUCER)) == (100, 32)
    assert bandwidth(WorkerPool(machine_type="a2-megagpu-16g")) == 100
    assert bandwidth(WorkerPool(machine_type="n1-standard-4", bandwidth_gbps=50)) == 50


@pytest.mark.req("LA-64")
def test_reduction_servers_are_offered_where_there_are_none() -> None:
    (offered,) = advice(job(WORKER, replace(WORKER, replicas=4)))
    assert offered.startswith("16 reduction servers of n1-highcpu-16 would carry the 500 Gbps")
    assert all(image in offered for image in IMAGES)
    assert [image.partition("-docker")[0] for image in IMAGES] == ["us", "europe", "asia"]
    assert not [*advice(job(WORKER))]


@pytest.mark.req("LA-64")
def test_too_few_and_too_small_reduction_servers_are_reported() -> None:
    enough = [*advice(job(WORKER, replace(WORKER, replicas=4), REDUCER))]
    assert not any("reduction servers carry" in each or "does best" in each for each in enough)
    few = [*advice(job(WORKER, replace(WORKER, replicas=4), replace(REDUCER, replicas=10)))]
    assert few[0] == "its 10 reduction servers carry 320 of 500 Gbps; 16 would"
    small = [*advice(job(WORKER, WORKER, replace(REDUCER, spec=NodeSpec(cpus=4))))]
    assert small[0].startswith("a reduction server does best with 16 CPUs and 32 Gbps")


@pytest.mark.req("LA-64")
def test_large_messages_are_advised() -> None:
    told = " ".join(advice(job(WORKER, WORKER, REDUCER, env={})))
    assert "bucket_cap_mb=64" in told
    horovod = replace(job(WORKER, WORKER, REDUCER), command="horovodrun python t.py")
    assert "set HOROVOD_FUSION_THRESHOLD to 134217728 or more" in " ".join(advice(horovod))
    enough = replace(horovod, env={"HOROVOD_FUSION_THRESHOLD": "134217728"})
    assert "HOROVOD" not in " ".join(advice(enough))


@pytest.mark.req("LA-64")
def test_cards_on_reduction_servers_and_workers_without_cards_are_reported() -> None:
    wrong = conflict_errors(job(WORKER, WORKER, replace(REDUCER, spec=V100)))
    assert wrong == ["worker_pools[2].spec.cards: a reduction server has no cards; remove them"]
    plain = replace(WORKER, spec=NodeSpec(cpus=96))
    wrong = conflict_errors(job(plain, WORKER, REDUCER))
    assert wrong == ["worker_pools[0].spec.cards: is needed: reduction servers serve workers with cards"]


@pytest.mark.req("LA-64")
def test_reduction_servers_are_offered_beside_an_empty_third_pool_and_not_beside_servers_of_another_kind() -> None:
    workers = replace(WORKER, replicas=4)
    other = replace(REDUCER, image="registry/parameter-server:1")
    assert len([*advice(job(WORKER, workers, replace(other, replicas=0)))]) == 1
    assert [*advice(job(WORKER, workers, other))] == []


@pytest.mark.req("LA-64")
def test_one_worker_alone_workers_without_cards_and_unknown_bandwidths_get_no_advice() -> None:
    unknown = replace(WORKER, machine_type="n1-standard-4")
    plain = replace(WORKER, spec=NodeSpec(cpus=96), bandwidth_gbps=100)
    for pools in ((WORKER,), (WORKER, unknown), (WORKER, plain)):
        assert [*advice(job(*pools))] == []
    assert [*advice(a_spec())] == []
    assert len([*advice(job(WORKER, WORKER))]) == 1


@pytest.mark.req("LA-64")
def test_reduction_servers_of_unknown_bandwidth_are_judged_by_their_cpus_alone() -> None:
    def about_servers(**fields: object) -> list[str]:
        server = replace(REDUCER, machine_type="", **fields)
        return [
            each
            for each in advice(job(WORKER, WORKER, server))
            if "reduction servers carry" in each or "does best" in each
        ]

    assert about_servers() == []
    assert len(about_servers(spec=NodeSpec(cpus=15))) == 1
    assert len(about_servers(bandwidth_gbps=31)) == 1
    assert about_servers(bandwidth_gbps=32) == []


@pytest.mark.req("LA-64")
def test_servers_that_carry_exactly_what_the_workers_send_are_enough() -> None:
    four = replace(WORKER, replicas=4, bandwidth_gbps=31)
    given = [*advice(job(replace(WORKER, bandwidth_gbps=32), four, replace(REDUCER, bandwidth_gbps=52, replicas=3)))]
    assert not any("carry" in each for each in given)
    given = [*advice(job(replace(WORKER, bandwidth_gbps=33), four, replace(REDUCER, bandwidth_gbps=52, replicas=3)))]
    assert given[0] == "its 3 reduction servers carry 156 of 157 Gbps; 4 would"


@pytest.mark.req("LA-64")
@pytest.mark.parametrize(("given", "advised"), [("134217727", True), ("much", True), ("", True), ("134217728", False)])
def test_horovod_is_advised_to_fuse_messages_unless_they_are_large_already(given: str, advised: bool) -> None:
    spec = replace(job(WORKER, WORKER, REDUCER, env={"HOROVOD_FUSION_THRESHOLD": given}), command="HOROVODrun x")
    assert any("HOROVOD_FUSION_THRESHOLD" in each for each in advice(spec)) is advised
