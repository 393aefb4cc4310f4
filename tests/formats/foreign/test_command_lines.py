"""Lines of arena and gcloud with all that has a counterpart, and the two shapes of gcloud's configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cockpit.formats.foreign.exchange import Form, taken_over, written
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.mounts import Volume
from cockpit.model.resilience import Restart
from cockpit.model.spec import JobSpec, Mode, NodeSpec, PriorityWord, WorkerPool

NOON = 1_700_000_000_000


def read(source: str, text: str) -> list[JobSpec]:
    return read_jobs(f"{source}.json", text, "/home/ann", defaults=Defaults(now=NOON))


def taken(text: str, **files: str) -> tuple[JobSpec, list[str]]:
    found = taken_over("file", text, files.__getitem__)
    assert found is not None
    (spec,) = read("file", found.text)
    return spec, [note for note in found.notes if not note.startswith("output:")]


def lost(spec: JobSpec, form: Form) -> tuple[str, ...]:
    return written(spec, form, read).lost


@pytest.mark.req("LA-70")
def test_arena_with_its_global_options_first_and_blanks_for_equals() -> None:
    line = """arena --loglevel info -n vision submit pytorchjob --name x --gpus 2 --workers 2 --image i -e A=b
        -l team=nlp
        --clean-task-policy All --priority urgent --queue --retry 3 --running-timeout 1h30m --data train:/data
        --data-dir=/srv/x --selector disk=ssd --toleration gpu=yes:NoSchedule "python t.py --a 'b c'"
    """.replace("\n", " \\\n")
    spec, notes = taken(line)
    assert (spec.name, spec.project, spec.mode, spec.nodes) == ("x", "vision", Mode.PYTORCH, 2)
    assert (spec.command, spec.env, spec.labels) == ("python t.py --a 'b c'", {"A": "b"}, {"team": "nlp"})
    assert (spec.priority, spec.suspension.scheduling, spec.restart) == (
        PriorityWord.URGENT,
        True,
        Restart(max_restarts=3),
    )
    assert (spec.time_limit_seconds, spec.node_selector) == (5400, {"disk": "ssd"})
    assert spec.volumes == (Volume(name="train"), Volume(name="x", path="/srv/x"))
    assert [each.text for each in spec.tolerations] == ["gpu=yes"]
    assert [note.partition(":")[0] for note in notes] == [
        *("--data=train", "--data=train", "--data-dir=/srv/x", "--loglevel=info", "--namespace=vision"),
        "--clean-task-policy=All",
    ]
    assert lost(spec, Form.ARENA) == ()


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("name", ["timeout", "maxWaitDuration"])
@pytest.mark.parametrize("value", ["1.5h", "", "-3s", "90"])
def test_an_invalid_vertex_duration_is_reported(name: str, value: str) -> None:
    pool = {
        "replicaCount": 1,
        "machineSpec": {"machineType": None},
        "containerSpec": {"imageUri": "i", "command": ["x"]},
    }
    spec, notes = taken(json.dumps({"jobSpec": {"workerPoolSpecs": [pool], "scheduling": {name: value}}}))
    assert f'scheduling.{name}={value}: is no duration such as "3600s"; left out' in notes
    assert [note for note in notes if "machineType" in note] == []
    assert spec.worker_pools[0].machine_type == ""


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("option", ["/srv/x", "/srv/x:/srv/x", "/srv/x:/data"])
def test_a_data_dir_is_a_host_folder_with_or_without_a_mount_path(option: str) -> None:
    spec, notes = taken(f"arena submit mpijob --name=x --data-dir={option} 'mpirun t'")
    assert spec.volumes == (Volume(name="x", path="/srv/x"),)
    assert notes == [f"--data-dir={option}: is shown as /workspace/volume/x instead of {option.rpartition(':')[2]}"]


@pytest.mark.req("LA-70")
def test_a_launcher_of_pytorch_in_a_line_of_arena_has_its_processes() -> None:
    line = "arena submit pytorch --name=x --gpus=4 --workers=2 --nproc-per-node=2 'torchrun t.py'"
    spec, notes = taken(line)
    assert "--nnodes=${WORLD_SIZE} --nproc_per_node=2 " in spec.command
    assert notes == ["torchrun: has the nodes as options here; the operator gives them as PET_ variables"]
    assert lost(spec, Form.ARENA) == ()
    spec, notes = taken(line.replace("--nproc-per-node=2", "").replace("--workers=2", "--workers=1"))
    assert spec.command == "torchrun --nproc_per_node=${SLOTS} t.py"
    assert lost(spec, Form.ARENA) == ()
    assert taken(line.replace("torchrun t.py", "python t.py"))[1] == [
        "--nproc-per-node=2: a node has a process for each card, 4 here; left out"
    ]


@pytest.mark.req("LA-70")
def test_arenas_workers_have_their_own_image_and_size() -> None:
    sizes = "--gpus=1 --worker-image=w --worker-cpu=4 --worker-memory=8Gi"
    line = f"arena submit tfjob --name=x --workers=3 {sizes} --ps=2 t.py"
    spec, notes = taken(line)
    assert (spec.mode, spec.nodes, spec.parameter_servers, spec.image) == (Mode.TENSORFLOW, 3, 2, "w")
    assert (spec.specs, notes) == ((NodeSpec(cpus=4, memory_mib=8192, card_milli=1000),), [])
    _, notes = taken(f"{line[:-4]} --psCpu=2 --worker-cpu-limit=8 t.py")
    assert [note.partition(":")[0] for note in notes] == ["--worker-cpu=4", "--ps-cpu=2"]


@pytest.mark.req("LA-70", "LA-62")
def test_a_chief_and_an_evaluator_make_worker_pools_of_arenas_roles() -> None:
    line = """arena submit tfjob --name=x --workers=2 --gpus=1 --chief --chief-cpu=1 --evaluator --ps=1 --ps-image=p
        --worker-cpu=4 --evaluator-memory=2Gi --image=i t.py""".replace("\n", " ")
    spec, notes = taken(line)
    assert (spec.mode, notes) == (Mode.WORKER_POOLS, [])
    small = NodeSpec()
    assert spec.worker_pools == (
        WorkerPool(replicas=1, spec=NodeSpec(cpus=1, memory_mib=small.memory_mib)),
        WorkerPool(replicas=2, spec=NodeSpec(cpus=4, memory_mib=small.memory_mib, card_milli=1000)),
        WorkerPool(replicas=1, image="p"),
        WorkerPool(replicas=1, spec=NodeSpec(memory_mib=2048)),
    )


@pytest.mark.req("LA-70")
def test_a_deepspeed_job_of_arena() -> None:
    line = "arena submit deepspeedjob --name=x --workers=2 --gpus=1 --job-restart-policy=OnFailure 'deepspeed t.py'"
    spec, notes = taken(line)
    assert (spec.mode, spec.restart, spec.command, notes) == (
        Mode.DEEPSPEED,
        Restart(max_restarts=6),
        "deepspeed t.py",
        [],
    )
    assert taken(f"{line} --job-backoff-limit=2")[0].restart == Restart(max_restarts=2)


MAPPING = """
workerPoolSpecs:
  machineSpec: {machineType: n1-highmem-2}
  replicaCount: 1
  containerSpec:
    imageUri: gcr.io/ucaip-test/ucaip-training-test
    args: [port=8500]
    command: [start]
"""
LIST = """
workerPoolSpecs:
- machineSpec: {machineType: n1-highmem-2}
  replicaCount: 1
  containerSpec: {imageUri: gcr.io/ucaip-test/ucaip-training-test, args: [port=8500], command: [start]}
"""
WHOLE = "displayName: x\nlabels: {team: nlp}\njobSpec:\n  " + LIST.strip().replace("\n", "\n  ") + "\n"
LINE = "gcloud ai custom-jobs create --region=r --config=job.yaml"


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("config", [MAPPING, LIST, WHOLE])
def test_gclouds_configuration_in_its_documented_shapes(config: str) -> None:
    spec, notes = taken(f"{LINE} --display-name=x", **{"job.yaml": config})
    (pool,) = spec.worker_pools
    assert (spec.name, spec.command, pool.image) == ("x", "start port=8500", "gcr.io/ucaip-test/ucaip-training-test")
    assert (pool.machine_type, pool.spec.cpus, notes) == (
        "n1-highmem-2",
        2,
        ["--region=r: has no counterpart here; left out"],
    )
    assert spec.labels == ({"team": "nlp"} if config is WHOLE else {})


@pytest.mark.req("LA-70")
def test_gcloud_with_labels_and_a_delimiter_of_its_own() -> None:
    line = (
        "gcloud ai custom-jobs create --display-name=x --labels=team=nlp,tier=a '--args=^;^a,b;c' --command=run "
        "--worker-pool-spec=replica-count=1,container-image-uri=i"
    )
    spec, notes = taken(line)
    assert (spec.labels, spec.command, notes) == ({"team": "nlp", "tier": "a"}, "run a,b c", [])
    assert lost(spec, Form.GCLOUD) == ()


def custom_job(**fields: Any) -> str:
    pools = fields.pop("pools", [{"replicaCount": 1, "containerSpec": {"imageUri": "i", "command": ["run"]}}])
    return json.dumps({"displayName": "x", "jobSpec": {"workerPoolSpecs": pools, **fields}})


@pytest.mark.req("LA-70")
def test_vertex_schedules_on_spot_nodes_and_waits_only_so_long() -> None:
    scheduling = {"timeout": "3600s", "strategy": "SPOT", "maxWaitDuration": "600s", "restartJobOnWorkerRestart": True}
    spec, notes = taken(custom_job(scheduling=scheduling))
    assert [each.text for each in spec.tolerations] == ["spot"]
    assert (spec.time_limit_seconds, spec.deadline_at) == (3600, NOON + 4_200_000)
    assert spec.restart == Restart(max_restarts=3)
    assert [note.partition(":")[0] for note in notes] == [
        "scheduling.maxWaitDuration=600s",
        "scheduling.restartJobOnWorkerRestart",
    ]
    assert lost(spec, Form.CUSTOMJOB) == ("deadline",)
    never, _ = taken(custom_job(scheduling={**scheduling, "disableRetries": True}))
    assert never.restart is None


@pytest.mark.req("LA-70")
def test_pools_whose_variables_differ_are_noted() -> None:
    def pool(value: str, *names: str) -> dict[str, Any]:
        env = [{"name": name, "value": value} for name in names]
        return {"replicaCount": 1, "containerSpec": {"imageUri": "i", "command": ["run"], "env": env}}

    spec, notes = taken(custom_job(pools=[pool("a", "A"), pool("b", "A", "B")]))
    assert spec.env == {"A": "a", "B": "b"}
    assert [note.partition(":")[0] for note in notes] == ["env.A=b", "env.B"]
    spec, notes = taken(custom_job(pools=[pool("x-$(A)", "A", "B")]))
    assert (spec.env, notes) == ({"A": "x-$(A)", "B": "x-x-$(A)"}, [])


@pytest.mark.req("LA-70")
def test_a_pool_without_a_command_runs_its_images_own() -> None:
    pools = [{"replicaCount": 1, "containerSpec": {"imageUri": "i", "args": ["--a"]}}]
    spec, _ = taken(custom_job(pools=pools))
    assert spec.command == "entrypoint --a"
    assert lost(spec, Form.CUSTOMJOB) == ()


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("model", "models"),
    [
        ({}, ()),
        ({"acceleratorType": ""}, ()),
        ({"acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED"}, ()),
        ({"acceleratorType": "NVIDIA_TESLA_T4"}, ("NVIDIA_TESLA_T4",)),
    ],
)
def test_accelerators_of_vertex_without_a_type_may_be_of_any_model(
    model: dict[str, str], models: tuple[str, ...]
) -> None:
    machine = {"machineType": "n1-standard-4", "acceleratorCount": 2, **model}
    pool = {"replicaCount": 1, "machineSpec": machine, "containerSpec": {"imageUri": "i", "command": ["x"]}}
    spec, _ = taken(json.dumps({"jobSpec": {"workerPoolSpecs": [pool]}}))
    (wanted,) = [each.spec for each in spec.worker_pools] or spec.specs
    assert (wanted.card_milli, wanted.card_models) == (2000, models)


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("form", [Form.SBATCH, Form.ARENA])
def test_a_pattern_in_a_command_stays_text_for_the_shell_of_another_system(form: Form) -> None:
    """cockpit starts the command without a shell, which alone would look for files."""
    (spec,) = read("job", json.dumps({"name": "x", "command": "python t.py *.csv {a,b} ~", "output": "/x"}))
    assert "command" not in lost(spec, form)
    text = written(spec, form, read).text
    assert 'python t.py "*.csv" "{a,b}" "~"' in text


@pytest.mark.req("LA-70")
def test_a_pattern_behind_quotes_is_one_of_the_shell_that_reads_the_line() -> None:
    spec, _ = taken("""arena submit pytorch --name=x --workers=1 --image=i 'python t.py "$DATA"/*.csv'""")
    assert spec.command.startswith("bash -c ")


@pytest.mark.req("LA-70")
def test_a_folder_whose_name_no_mount_may_have_is_mounted_under_another() -> None:
    spec, notes = taken("arena submit pytorch --name=x --image=i --data-dir=/home/ann/.cache 'python t.py'")
    assert spec.volumes == (Volume(name="data", path="/home/ann/.cache"),)
    assert notes == ["--data-dir=/home/ann/.cache: is shown as /workspace/volume/data instead of /home/ann/.cache"]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("value", ["$$", "$(A)", "$$(A)", "$", "a$(B)b"])
def test_a_variable_of_a_custom_job_is_no_reference(value: str) -> None:
    fields = {"name": "x", "command": "a", "output": "/x", "env": {"A": "1", "B": value}}
    (spec,) = read("job", json.dumps({**fields, "mode": "worker-pools", "worker_pools": [{"spec": {"cpus": 1}}]}))
    assert "env" not in lost(spec, Form.CUSTOMJOB)
