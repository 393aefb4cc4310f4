"""The variables of worker pools, as the page on distributed training prints them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cockpit.launch.modes import Peer
from cockpit.launch.pools import custom_job_spec, pool_environment, pool_hints, pool_roles, pools_of, replica_spec
from cockpit.model.spec import JobSpec, Mode, NodeSpec, WorkerPool
from tests.builders import a_spec


def environment(*replicas: int, rank: int = 0, trial: str = "") -> dict[str, Any]:
    pools = tuple(WorkerPool(replicas=count) for count in replicas)
    peers = [Peer(f"cmle-training-{role.word}-ab-{role.index}", 1, role) for role in pool_roles(pools)]
    spec = a_spec(mode=Mode.WORKER_POOLS, worker_pools=pools)
    found = pool_environment(spec, peers, rank, job="7", trial=trial)
    return {name: json.loads(value) for name, value in found.items()}


@pytest.mark.req("LA-61")
def test_cluster_spec_names_the_existing_pools() -> None:
    found = environment(1, 2, 2, 3, trial="TRIAL_ID")["CLUSTER_SPEC"]
    assert found.pop("job")["workerPoolSpecs"][1]["replicaCount"] == 2
    assert found == {
        "cluster": {
            "workerpool0": ["cmle-training-workerpool0-ab-0:2222"],
            "workerpool1": ["cmle-training-workerpool1-ab-0:2222", "cmle-training-workerpool1-ab-1:2222"],
            "workerpool2": ["cmle-training-workerpool2-ab-0:2222", "cmle-training-workerpool2-ab-1:2222"],
            "workerpool3": [
                "cmle-training-workerpool3-ab-0:2222",
                "cmle-training-workerpool3-ab-1:2222",
                "cmle-training-workerpool3-ab-2:2222",
            ],
        },
        "environment": "cloud",
        "task": {"type": "workerpool0", "index": 0, "trial": "TRIAL_ID"},
    }


@pytest.mark.req("LA-60", "LA-61")
def test_an_omitted_pool_keeps_the_positions() -> None:
    found = environment(1, 0, 1, rank=1)
    assert [*found["CLUSTER_SPEC"]["cluster"]] == ["workerpool0", "workerpool2"]
    assert found["CLUSTER_SPEC"]["task"] == {"type": "workerpool2", "index": 0}
    assert found["CLUSTER_SPEC"]["job"]["workerPoolSpecs"][1] == {}


@pytest.mark.req("LA-62")
def test_tf_config_is_set_too_on_jobs_of_several_replicas() -> None:
    found = environment(1, 2, 1, rank=1, trial="1")["TF_CONFIG"]
    assert found.pop("job")
    assert found == {
        "cluster": {
            "chief": ["cmle-training-workerpool0-ab-0:2222"],
            "worker": ["cmle-training-workerpool1-ab-0:2222", "cmle-training-workerpool1-ab-1:2222"],
            "ps": ["cmle-training-workerpool2-ab-0:2222"],
        },
        "environment": "cloud",
        "task": {"cloud": "7", "index": 0, "trial": "1", "type": "worker"},
    }
    assert [*environment(1)] == ["CLUSTER_SPEC"]


@pytest.mark.req("LA-60")
def test_each_pool_keeps_its_own_command_and_image() -> None:
    pools = (
        WorkerPool(replicas=1),
        WorkerPool(),
        WorkerPool(replicas=2, command="serve", image="reducer", spec=NodeSpec(cpus=16)),
    )
    spec = a_spec(worker_pools=pools, mode=Mode.WORKER_POOLS)
    assert [replica_spec(spec, rank).command for rank in range(3)] == ["python train.py", "serve", "serve"]
    assert [replica_spec(spec, rank).image for rank in range(3)] == ["host", "reducer", "reducer"]
    assert [each.cpus for each in spec.helpers] == [16, 16]


@pytest.mark.req("LA-60")
def test_tensorflow_has_one_evaluator() -> None:
    one, two = (tuple(WorkerPool(replicas=count) for count in (1, 1, 0, evaluators)) for evaluators in (1, 2))
    assert pool_hints(a_spec(worker_pools=one)) == []
    assert pool_hints(a_spec(worker_pools=two)) == ["TensorFlow takes one evaluator, and there are 2"]


@pytest.mark.req("LA-60", "LA-61")
@pytest.mark.parametrize(
    ("machine", "cards", "expected"),
    [
        ("n1-standard-8", 2, {"acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 2}),
        ("a2-highgpu-2g", 2, {}),
        ("n1-standard-8", 0, {}),
        ("new-machine-8", 1, {"acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 1}),
    ],
)
def test_cards_are_named_beside_a_machine_type_that_does_not_include_them(
    machine: str, cards: int, expected: dict[str, Any]
) -> None:
    asked = NodeSpec(cpus=8, memory_mib=1024, card_milli=1000 * cards, card_models=("NVIDIA_TESLA_V100",) * bool(cards))
    spec = JobSpec(
        name="t", command="true", output="/o", worker_pools=(WorkerPool(replicas=1, machine_type=machine, spec=asked),)
    )
    (pool,) = custom_job_spec(spec)["workerPoolSpecs"]
    assert pool["machineSpec"] == {"machineType": machine, **expected}


@pytest.mark.req("LA-70")
def test_a_job_without_pools_amounts_to_a_primary_workers_and_parameter_servers() -> None:
    big = NodeSpec(cpus=8)
    spec = a_spec(nodes=3, specs=(big, NodeSpec(cpus=1)), mode=Mode.TENSORFLOW, parameter_servers=2)
    server = NodeSpec(cpus=1, memory_mib=1024)
    assert [(pool.replicas, pool.spec) for pool in pools_of(spec)] == [(1, big), (2, big), (2, server)]
    assert [pool.replicas for pool in pools_of(a_spec(mode=Mode.TENSORFLOW, parameter_servers=1))] == [1, 0, 1]
    assert [pool.replicas for pool in pools_of(a_spec())] == [1]
    pools = (WorkerPool(replicas=1), WorkerPool())
    assert pools_of(a_spec(worker_pools=pools)) == pools


@pytest.mark.req("LA-60", "LA-61")
def test_a_pool_is_described_with_its_own_image_command_and_disk_else_with_those_of_the_job() -> None:
    own = WorkerPool(replicas=2, image="reducer", command="serve $PORT", disk_type="pd-ssd", disk_gib=100)
    spec = a_spec(worker_pools=(WorkerPool(replicas=1), own), image="torch", env={"A": "b"})
    first, second = custom_job_spec(spec)["workerPoolSpecs"]
    env = [{"name": "A", "value": "b"}]
    assert first == {
        "machineSpec": {"machineType": "custom-1-1024"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": "torch", "command": ["python", "train.py"], "env": env},
    }
    assert second["diskSpec"] == {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
    assert second["containerSpec"]["imageUri"] == "reducer"
    assert second["containerSpec"]["command"][:2] == ["bash", "-c"]
    (bare,) = custom_job_spec(a_spec())["workerPoolSpecs"]
    assert bare["containerSpec"] == {"command": ["python", "train.py"]}
    (sized,) = custom_job_spec(a_spec(worker_pools=(WorkerPool(replicas=1, disk_gib=5),)))["workerPoolSpecs"]
    assert sized["diskSpec"] == {"bootDiskSizeGb": 5}


@pytest.mark.req("LA-61")
@pytest.mark.parametrize(("milli", "count"), [(500, 1), (1000, 1), (3000, 3)])
def test_a_share_of_a_card_is_described_as_a_whole_one_and_cards_of_any_model_as_unspecified(
    milli: int, count: int
) -> None:
    (pool,) = custom_job_spec(a_spec(specs=(NodeSpec(card_milli=milli),)))["workerPoolSpecs"]
    assert pool["machineSpec"]["acceleratorCount"] == count
    assert pool["machineSpec"]["acceleratorType"] == "ACCELERATOR_TYPE_UNSPECIFIED"
