from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.launch import plan as launching
from cockpit.launch.command import expand
from cockpit.launch.modes import ModeSetup
from cockpit.launch.plan import LaunchPlan, launch_plan
from cockpit.launch.sweeps import task_spec, trial_spec
from cockpit.model.ids import JobId, NodeName, ReplicaId, UserName
from cockpit.model.image import Mpi
from cockpit.model.job import ArrayTask, Submitter
from cockpit.model.node import Allocation, Card, CardSlice, CardVendor, Node
from cockpit.model.spec import Algorithm, HomeAccess, JobKind, JobSpec, Mode, NodeSpec, Sweep, Task, WorkerPool

ALICE = Submitter(name=UserName("alice"), uid=1000, gid=1000, groups=(1000,), home="/home/alice")
CARDS = tuple(
    Card(index=index, model="A100", vendor=CardVendor.NVIDIA, devices=(f"/dev/nvidia{index}",)) for index in range(2)
)
NODE = Node(name=NodeName("n2"), cpus=8, memory_mib=8192, cards=CARDS)
PLACEMENT = (
    Allocation(0, NodeName("n1"), 2, 512),
    Allocation(1, NodeName("n2"), 2, 512, (CardSlice(1, None),)),
)


def plan(array: ArrayTask | None = None, **fields: Any) -> LaunchPlan:
    given = {"name": "held-one", "command": "python3 t.py", "output": "/data/out"} | fields
    return launch_plan(JobSpec(**given), ALICE, NODE, PLACEMENT[1], PLACEMENT, ReplicaId(JobId(7), 2, 1), array)


@pytest.mark.req("SC-10")
def test_a_task_of_an_array_has_its_task_id() -> None:
    task = plan(ArrayTask(JobId(5), 9, 2, 3, 1, 9), command="t $SLURM_ARRAY_TASK_ID", env={"SLURM_ARRAY_JOB_ID": "x"})
    assert task.argv == ("t", "9")
    array = {name: value for name, value in task.env.items() if name.startswith("SLURM_ARRAY_")}
    assert array == {
        "SLURM_ARRAY_JOB_ID": "5",
        "SLURM_ARRAY_TASK_ID": "9",
        "SLURM_ARRAY_TASK_COUNT": "3",
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_MAX": "9",
        "SLURM_ARRAY_TASK_STEP": "4",
    }
    assert not any(name.startswith("SLURM_") for name in plan().env)


@pytest.mark.req("LA-50")
def test_a_standalone_command_is_started_unchanged() -> None:
    assert plan(command="python3 t.py --sep ';' 'a b'").argv == ("python3", "t.py", "--sep", ";", "a b")


@pytest.mark.req("JT-03")
def test_a_session_without_a_command_stays_open_for_its_shells() -> None:
    assert plan(command="", kind=JobKind.INTERACTIVE).argv == ("sleep", "infinity")
    assert plan(command="jupyter lab", kind=JobKind.INTERACTIVE).argv == ("jupyter", "lab")


@pytest.mark.req("LA-01")
def test_unset_variables_are_kept_and_named_unless_a_shell_sets_them() -> None:
    made = plan(command="t $X $NONE", env={"X": "y"})
    assert made.argv == ("t", "y", "$NONE")
    assert made.hints == ("$NONE is not set for this replica; the program gets it as written",)
    loop = 'bash -c "for i in 1; do echo $i; done"'
    assert (plan(command=loop).argv[2], plan(command=loop).hints) == ("for i in 1; do echo $i; done", ())


@pytest.mark.req("LA-01")
def test_a_batchs_tasks_a_sweeps_trials_and_a_pools_replicas_keep_their_scripts_variables() -> None:
    loop = 'bash -c "for i in 1; do echo $i; done"'
    own = "for i in 1; do echo $i; done"
    batch = JobSpec(name="x", kind=JobKind.BATCH, output="/data/out", tasks=(Task(command=loop),))
    assert expand(task_spec(batch, 0).command, {})[2] == own
    trial = trial_spec(JobSpec(name="x", command=loop, output="/data/out", sweep=Sweep(parameters={"lr": ("$i",)})), 0)
    assert expand(trial.command, {})[2:] == (own, "--lr=$i")
    pools = (WorkerPool(replicas=1, spec=NodeSpec()), WorkerPool(replicas=1, spec=NodeSpec(), command=loop))
    assert plan(mode=Mode.WORKER_POOLS, worker_pools=pools, specs=(NodeSpec(),)).argv[2] == own


@pytest.mark.req("LA-01", "LA-50")
def test_a_command_is_expanded_with_the_replicas_own_environment() -> None:
    argv = plan(command="t $COCKPIT_REPLICA/$COCKPIT_REPLICAS $X $((COCKPIT_SLOTS * 2))", env={"X": "y"}).argv
    assert argv == ("t", "1/2", "y", "2")


def test_the_environment_is_complete_and_independent_of_the_engine() -> None:
    env = plan(env={"X": "y"}).env
    assert {name: value for name, value in env.items() if "VISIBLE" not in name} == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/home/alice",
        "USER": "alice",
        "LOGNAME": "alice",
        "LANG": "C.UTF-8",
        "X": "y",
        "PYTHONPATH": "/run/cockpit-python",
        "COCKPIT_JOB_ID": "7",
        "COCKPIT_JOB_NAME": "held-one",
        "COCKPIT_ATTEMPT": "2",
        "COCKPIT_REPLICA": "1",
        "COCKPIT_REPLICAS": "2",
        "COCKPIT_NODE": "n2",
        "COCKPIT_NODES": "n1,n2",
        "COCKPIT_CPUS": "2",
        "COCKPIT_MEMORY_MIB": "512",
        "COCKPIT_SLOTS": "1",
        "COCKPIT_WORKSPACE": "/workspace",
        "COCKPIT_OUTPUTS": "/workspace/outputs",
        "COCKPIT_CARDS": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


@pytest.mark.req("JT-47")
def test_a_job_cannot_give_itself_other_cards() -> None:
    given = plan(env={"CUDA_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "0", "COCKPIT_JOB_ID": "1", "PATH": "/x"})
    assert given.env["CUDA_VISIBLE_DEVICES"] == "1"
    assert given.env["ROCR_VISIBLE_DEVICES"] == ""
    assert given.env["COCKPIT_JOB_ID"] == "7"
    assert given.env["PATH"] == "/x"
    assert given.devices == ("/dev/nvidia1",)


@pytest.mark.req("JT-47", "JT-20")
def test_a_held_container_has_the_same_environment_without_cards() -> None:
    given = plan(env={"X": "y"})
    kept = given.env | given.kept_env
    differing = {name for name in given.env if given.env[name] != kept[name]}
    assert differing == {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "COCKPIT_CARDS"}
    assert all(kept[name] == "" for name in differing)
    assert kept.keys() == given.env.keys()


@pytest.mark.req("JT-30")
def test_the_working_folder_is_the_algorithm_if_there_is_one() -> None:
    assert plan().workdir == "/workspace"
    assert plan(algorithm=Algorithm(path="/a")).workdir == "/workspace/algorithm"


@pytest.mark.req("JT-27")
def test_a_missing_home_is_replaced_by_a_writable_folder() -> None:
    assert plan(home=HomeAccess.NONE).env["HOME"] == "/tmp"
    assert plan(home=HomeAccess.RW).env["HOME"] == "/home/alice"


@pytest.mark.req("JT-01")
def test_the_host_name_is_made_of_the_jobs_name_and_the_rank() -> None:
    assert plan(name="My [bold] job").hostname == "my-bold-job-1"


@pytest.mark.req("JT-49", "LA-12")
def test_the_mpi_is_that_of_the_root_that_the_job_starts_with(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mpi | None] = []
    monkeypatch.setattr(launching, "outfit", lambda *words: asked.append(words[-1]) or ModeSetup(words[1]))
    node = msgspec.structs.replace(NODE, mpi=Mpi.OPENMPI)
    for fields in ({}, {"image": "torch", "image_mpi": Mpi.MPICH}, {"image": "dir:/root"}):
        spec = JobSpec(name="a", command="x", output="/o", **fields)
        launch_plan(spec, ALICE, node, PLACEMENT[1], PLACEMENT, ReplicaId(JobId(7), 2, 1))
    assert asked == [Mpi.OPENMPI, Mpi.MPICH, None]
