"""The launch plans of sweeps, elastic, resumable and Slurm jobs: which replica gets which variables."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.launch.example_placement import example_node, example_placement
from cockpit.launch.modes import HOSTFILE, Role
from cockpit.launch.plan import LaunchPlan, launch_plan, peers_of
from cockpit.launch.world import DISCOVERY
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import ArrayTask
from cockpit.model.resilience import Elastic, ElasticResume, Resume
from cockpit.model.spec import JobSpec, Mode, NodeSpec, Sweep, WorkerPool
from tests.builders import ANN, a_spec


def plan(spec: JobSpec, rank: int = 0, attempt: int = 1, array: ArrayTask | None = None) -> LaunchPlan:
    placement = example_placement(spec)
    node = example_node(spec, placement[rank], ())
    return launch_plan(spec, ANN, node, placement[rank], placement, ReplicaId(JobId(7), attempt, rank), array)


def roles(spec: JobSpec) -> list[Role]:
    return [peer.role for peer in peers_of(spec, example_placement(spec))]


@pytest.mark.req("LA-63")
def test_only_a_trial_of_a_sweep_knows_its_number() -> None:
    sweep = Sweep(parameters={"lr": ("1", "2")})
    assert plan(a_spec(sweep=sweep), array=ArrayTask(JobId(5), 1)).env["COCKPIT_TRIAL"] == "2"
    assert "COCKPIT_TRIAL" not in plan(a_spec(), array=ArrayTask(JobId(5), 1)).env
    assert "COCKPIT_TRIAL" not in plan(a_spec(sweep=sweep)).env


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(
    ("count", "first", "last", "step"), [(1, 3, 3, "1"), (2, 1, 5, "4"), (3, 1, 5, "2"), (3, 1, 6, "1"), (3, 0, 2, "1")]
)
def test_the_step_of_an_array_is_the_even_distance_of_its_indices(count: int, first: int, last: int, step: str) -> None:
    task = ArrayTask(JobId(5), first, 0, count, first, last)
    assert plan(a_spec(), array=task).env["SLURM_ARRAY_TASK_STEP"] == step


HOROVOD = a_spec(
    "x", mode=Mode.HOROVOD, nodes=2, specs=(NodeSpec(card_milli=2000),), elastic=Elastic(workers=2, max_workers=4)
)


@pytest.mark.req("EL-06")
def test_only_the_launcher_has_the_script_that_lists_hosts_and_the_sizes_under_arenas_names() -> None:
    launcher, worker = plan(HOROVOD), plan(HOROVOD, 1)
    assert roles(HOROVOD) == [Role("launcher", 0), Role("worker", 0), Role("worker", 1)]
    assert DISCOVERY in launcher.files
    assert DISCOVERY not in worker.files
    sizes = {"workers": "2", "gpus": "2", "minWorkers": "1", "maxWorkers": "4"}
    assert sizes.items() <= launcher.env.items()
    assert not sizes.keys() & worker.env.keys()
    alone = a_spec("x", mode=Mode.HOROVOD, specs=HOROVOD.specs, elastic=Elastic(workers=1, max_workers=4))
    assert (plan(alone).env["workers"], plan(alone).env["gpus"]) == ("1", "2")


@pytest.mark.req("EL-01", "EL-03")
def test_a_worker_knows_the_sizes_of_its_job_and_how_often_it_has_been_resumed() -> None:
    env = plan(HOROVOD, 1, attempt=3).env
    assert (env["COCKPIT_RESUME"], env["COCKPIT_MIN_WORKERS"], env["COCKPIT_MAX_WORKERS"]) == ("2", "1", "4")
    assert (env["COCKPIT_CHECKPOINTS"], env["COCKPIT_WORKERS_FILE"]) == (
        "/workspace/outputs",
        "/run/cockpit/workers.json",
    )
    assert (env["COCKPIT_PULSE_FILE"], env["COCKPIT_WORKERS_SOCKET"]) == (
        "/run/cockpit-pulse/beat",
        "/run/cockpit/workers.sock",
    )


@pytest.mark.req("EL-10")
def test_a_resumable_job_knows_its_retries_its_grace_period_and_its_checkpoints() -> None:
    resume = Resume(max_resumes=5, grace_seconds=60, elastic=ElasticResume(min_nodes=1))
    env = plan(a_spec(resume=resume, pool="p"), attempt=2).env
    assert (env["COCKPIT_RESUME"], env["COCKPIT_MAX_RESUMES"], env["COCKPIT_GRACE_SECONDS"]) == ("1", "5", "60")
    assert env["COCKPIT_CHECKPOINTS"] == "/workspace/outputs"
    assert "COCKPIT_RESUME" not in plan(a_spec(), attempt=2).env


@pytest.mark.req("LA-20")
def test_parameter_servers_come_after_the_workers_and_count_from_0() -> None:
    spec = a_spec(mode=Mode.TENSORFLOW, nodes=2, parameter_servers=2)
    assert roles(spec) == [Role("worker", 0), Role("worker", 1), Role("ps", 0), Role("ps", 1)]
    assert roles(a_spec(nodes=2)) == [Role("worker", 0), Role("worker", 1)]


@pytest.mark.req("LA-60")
def test_hints_about_the_whole_job_are_given_once_with_the_first_replica() -> None:
    pools = tuple(WorkerPool(replicas=count) for count in (1, 1, 0, 2))
    spec = a_spec(mode=Mode.WORKER_POOLS, worker_pools=pools)
    assert plan(spec, 0).hints == ("TensorFlow takes one evaluator, and there are 2",)
    assert plan(spec, 1).hints == ()


@pytest.mark.req("LA-71", "LA-02")
@pytest.mark.parametrize(
    ("mode", "env", "slots"),
    [
        (Mode.SLURM, {"SLURM_NTASKS": "6"}, "slots=3"),
        (Mode.SLURM, {"SLURM_NTASKS_PER_NODE": "5"}, "slots=5"),
        (Mode.SLURM, {"OTHER": "6"}, "slots=1"),
        (Mode.HOROVOD, {"SLURM_NTASKS": "6"}, "slots=1"),
    ],
)
def test_a_slurm_job_that_asks_for_tasks_has_a_slot_for_each(mode: Mode, env: dict[str, Any], slots: str) -> None:
    assert plan(a_spec(mode=mode, nodes=2, env=env)).files[HOSTFILE].splitlines()[0].endswith(slots)
