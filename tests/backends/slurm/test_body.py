"""A job's script, run here with stand-ins for Slurm's commands: what each node's command finds in its environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.backends.slurm.mapping.script import submission
from cockpit.model.mounts import Algorithm
from cockpit.model.spec import JobSpec, Mode, NodeSpec, Sweep, WorkerPool
from tests.builders import a_spec

JOB = 4711
PORT = 10_000 + JOB
TELLS = (
    "import os, sys; "
    "open(os.environ['TO'] + os.environ['COCKPIT_REPLICA'], 'w').write(repr((dict(os.environ), sys.argv[1:])))"
)
STAND_INS = {
    "scontrol": """
case $2 in
hostnames) echo "$3" | tr , '\\n' ;;
node) echo "   NodeAddr=10.0.0.${3#x} NodeHostName=y" ;;
esac""",
    "getent": "case $2 in x*) exit 2 ;; esac",
    "mpirun": 'case $1 in --version) echo "mpirun (Open MPI) 4.1" ;; *) echo "$*" >"$TO"mpirun ;; esac',
    "srun": """
trap '' TERM # a helper writes its file however soon the others have ended
group=
while [ "$1" != bash ]; do
    case $1 in --het-group=*) group=_HET_GROUP_${1#*=} ;; esac
    shift
done
eval "nodes=\\$SLURM_JOB_NUM_NODES$group"
node=0
while [ $node -lt "$nodes" ]; do
    SLURM_NODEID=$node SLURMD_NODENAME=node$node "$@"
    node=$((node + 1))
done""",
}
ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)


def seen(folder: Path, spec: JobSpec, *sizes: int, **env: str) -> dict[int, tuple[dict[str, str], list[str]]]:
    """Environment and arguments of each rank. `sizes`: how many nodes each group has."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    given = {"PATH": f"{programs}:/usr/bin:/bin", "TO": f"{folder}/rank", "SLURM_JOB_ID": str(JOB), "SLURM_NODEID": "0"}
    suffixes = [f"_HET_GROUP_{position}" for position in range(len(sizes))] if len(sizes) > 1 else [""]
    first = 0
    for suffix, size in zip(suffixes, sizes, strict=True):
        given[f"SLURM_JOB_NUM_NODES{suffix}"] = str(size)
        given[f"SLURM_JOB_NODELIST{suffix}"] = ",".join(f"n{first + number}" for number in range(size))
        given[f"SLURM_CPUS_PER_TASK{suffix}"] = "1"
        first += size
    told = replace(spec, output=str(folder))
    run = subprocess.run(
        ["sh"], input=submission(told).script, env=given | env, text=True, capture_output=True, check=True
    )
    assert run.stderr == ""
    return {int(each.name[4:]): eval(each.read_text()) for each in folder.glob("rank[0-9]*")}


def printing_spec(**fields: Any) -> JobSpec:
    return replace(a_spec("train"), command=f'python3 -c "{TELLS}"', **fields)


@pytest.mark.req("LA-30", "LA-02", "SL-20")
def test_pytorch_counts_nodes_and_meets_at_a_port_of_the_job(tmp_path: Path) -> None:
    spec = printing_spec(mode=Mode.PYTORCH, nodes=2, specs=(NodeSpec(card_milli=4000),))
    spec = replace(spec, command=f"bash -c {json.dumps(spec.command)}")
    found = seen(tmp_path, spec, 2)
    wanted = {"MASTER_ADDR": "n0", "MASTER_PORT": str(PORT), "WORLD_SIZE": "2", "SLOTS": "4"}
    assert [env["RANK"] for env, _ in (found[0], found[1])] == ["0", "1"]
    assert all(wanted.items() <= env.items() for env, _ in found.values())


@pytest.mark.req("LA-31", "SL-20")
def test_a_plain_python_command_goes_through_pytorchs_launcher() -> None:
    script = submission(replace(a_spec("train"), mode=Mode.PYTORCH, nodes=2, command="python3 t.py --lr 1")).script
    assert (
        "python3 -m torch.distributed.launch --nproc_per_node=$SLOTS --nnodes=$WORLD_SIZE --node_rank=$RANK "
        "--master_addr=$MASTER_ADDR --master_port=$MASTER_PORT t.py --lr 1"
    ) in script


@pytest.mark.req("LA-20", "LA-21", "SL-20")
def test_tensorflow_has_its_servers_on_nodes_of_their_own(tmp_path: Path) -> None:
    spec = printing_spec(mode=Mode.TENSORFLOW, nodes=2, parameter_servers=1)
    found = {rank: json.loads(env["TF_CONFIG"]) for rank, (env, _) in seen(tmp_path, spec, 2, 1).items()}
    assert found[2] == {
        "cluster": {"ps": [f"n2:{PORT + 2}"], "worker": [f"n0:{PORT}", f"n1:{PORT + 1}"]},
        "task": {"type": "ps", "index": "0"},
        "environment": "cloud",
    }
    assert [found[rank]["task"] for rank in (0, 1)] == [{"type": "worker", "index": index} for index in "01"]


@pytest.mark.req("LA-61", "LA-62", "SL-20")
def test_a_pool_job_reads_both_of_its_variables(tmp_path: Path) -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(), WorkerPool(replicas=2, spec=NodeSpec(cpus=3)))
    found = seen(tmp_path, printing_spec(mode=Mode.WORKER_POOLS, worker_pools=pools), 1, 2)
    env, _ = found[2]
    told, config = json.loads(env["CLUSTER_SPEC"]), json.loads(env["TF_CONFIG"])
    assert told["cluster"] == {"workerpool0": [f"n0:{PORT}"], "workerpool2": [f"n1:{PORT + 1}", f"n2:{PORT + 2}"]}
    assert told["task"] == {"type": "workerpool2", "index": 1}
    assert config["task"] == {"type": "ps", "index": 1, "cloud": str(JOB)}
    assert [each.get("replicaCount") for each in told["job"]["workerPoolSpecs"]] == [1, None, 2]
    assert (found[0][0]["COCKPIT_REPLICA"], found[0][0]["COCKPIT_REPLICAS"]) == ("0", "3")


@pytest.mark.req("LA-10", "LA-11", "LA-12")
def test_mpirun_gets_as_many_processes_as_there_are_cards(tmp_path: Path) -> None:
    command = 'bash -c \'cat "$OMPI_MCA_orte_default_hostfile" "$PRTE_MCA_prte_default_hostfile" "$HYDRA_HOST_FILE"\''
    spec = replace(a_spec("train"), mode=Mode.HOROVOD, nodes=2, specs=(NodeSpec(card_milli=4000),), command=command)
    seen(tmp_path, spec, 2)
    assert (tmp_path / "rankmpirun").read_text().startswith("--allow-run-as-root -np 8 -bind-to none -map-by slot")
    script = submission(spec).script
    assert "s/$/ slots=4/" in script
    assert "s/$/:4/" in script


def test_container_paths_are_replaced_by_the_paths_they_stand_for() -> None:
    command = "python3 /workspace/algorithm/train.py --to '/workspace/outputs' --not /workspace/algorithms"
    spec = replace(a_spec("job"), command=command, algorithm=Algorithm(path="/home/ann/code"), output="/o")
    assert "python3 /home/ann/code/train.py --to" in submission(spec).script
    assert "/o" in submission(spec).script.partition("--to")[2]
    assert "--not /workspace/algorithms" in submission(spec).script


@pytest.mark.req("SL-20")
@pytest.mark.parametrize("folder", ["/home/ann/my code", "/home/ann/it's", '/home/ann/a "b" $HOME `id` \\'])
def test_a_path_that_needs_quotes_replaces_the_place_of_a_container(tmp_path: Path, folder: str) -> None:
    spec = printing_spec(algorithm=Algorithm(path=folder))
    paths = "/workspace/algorithm/train.py --to=/workspace/outputs '/workspace/algorithm/a'$HOME"
    outputs = tmp_path / "my out"
    outputs.mkdir()
    found = seen(outputs, replace(spec, command=f"{spec.command} {paths}"), 1, HOME="/home/x y")
    assert found[0][1] == [f"{folder}/train.py", f"--to={outputs}", f"{folder}/a/home/x y"]


def test_a_command_that_calls_srun_runs_on_the_first_node(tmp_path: Path) -> None:
    found = seen(tmp_path, printing_spec(mode=Mode.SLURM, nodes=2), 2)
    assert (list(found), found[0][0]["COCKPIT_REPLICAS"], "COCKPIT_FILES" in found[0][0]) == ([0], "2", False)


@pytest.mark.req("LA-63", "SL-20")
def test_each_trial_of_a_sweep_has_its_own_values(tmp_path: Path) -> None:
    spec = printing_spec(sweep=Sweep(parameters={"lr": ("1", "it's; $HOME")}, parallel=1))
    assert "--array=0-1%1" in submission(spec).argv
    ((env, arguments),) = seen(tmp_path, spec, 1, SLURM_ARRAY_TASK_ID="1").values()
    assert (env["COCKPIT_TRIAL"], arguments) == ("2", ["--lr=it's; $HOME"])


def test_a_node_name_known_only_to_slurm_is_replaced_by_its_address(tmp_path: Path) -> None:
    ((env, _),) = seen(tmp_path, printing_spec(), 1, SLURM_JOB_NODELIST="x7").values()
    assert env["COCKPIT_MASTER"] == "10.0.0.7"


@given(ANY_TEXT, ANY_TEXT)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.req("TR-06")
def test_text_of_the_user_is_quoted_in_the_script(tmp_path: Path, value: str, name: str) -> None:
    spec = printing_spec(env={"WORD": value}, sweep=Sweep(parameters={"lr": (value,)}), terminal=True)
    ((env, arguments),) = seen(tmp_path, replace(spec, name=name), 1, SLURM_ARRAY_TASK_ID="0").values()
    assert (env["WORD"], env["COCKPIT_JOB_NAME"], arguments) == (value, name, [f"--lr={value}"])


@pytest.mark.req("JT-08", "LA-70")
def test_a_batch_script_begins_on_the_first_node_and_starts_the_others_itself() -> None:
    script = submission(replace(a_spec("train"), mode=Mode.SLURM, nodes=2, command="srun ./a.out")).script
    assert "hostfile" not in script
    assert "--kill-on-bad-exit" not in script  # the step that would start it on every node
    assert "srun ./a.out" in script


@pytest.mark.req("LA-01", "SL-20")
@pytest.mark.parametrize("nodes", [1, 2])
def test_variables_of_a_commands_own_shell_are_passed_to_it(tmp_path: Path, nodes: int) -> None:
    loop = 'for i in 1 2; do set -- \\"$@\\" $i $((i * 2)) ${none:-z}; done'
    command = f'bash -c "{loop}; exec python3 -c \\"{TELLS}\\" $LR \\"$@\\""'
    spec = replace(a_spec("train"), command=command, env={"LR": "0.1"}, nodes=nodes, mode=Mode.PYTORCH)
    ranks = seen(tmp_path, spec, nodes)
    assert [words for _, words in ranks.values()] == [["0.1", "1", "2", "z", "2", "4", "z"]] * nodes
