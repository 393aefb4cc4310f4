"""Manifests of Kubernetes in all their kinds: each becomes the same job, and the job the same manifest again."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.exchange import Form, form_of, taken_over, written
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.headless.verbs.job_files import FORMS
from cockpit.launch.command import expand
from cockpit.model.mounts import Dataset, Volume
from cockpit.model.resilience import Restart, WorkerRestart
from cockpit.model.spec import JobSpec, Mode, NodeSpec, PriorityWord
from tests.formats.foreign.test_command_lines import lost, taken

INDEXED = """
apiVersion: batch/v1
kind: Job
metadata: {name: pi, namespace: math, labels: {team: nlp}}
spec:
  completions: 5
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 4
  activeDeadlineSeconds: 100
  suspend: true
  template:
    metadata: {labels: {app.kubernetes.io/name: pi}}
    spec:
      restartPolicy: OnFailure
      terminationGracePeriodSeconds: 45
      priorityClassName: urgent
      nodeSelector: {disk: ssd}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: zone, operator: In, values: [a]}
              - {key: kubernetes.io/hostname, operator: In, values: [n1, n2]}
      tolerations: [{key: gpu, operator: Equal, value: "yes", effect: NoSchedule}, {operator: Exists}]
      containers:
      - name: pi
        image: perl:5.34.0
        command: ["perl", "-wle", "print $(DIGITS) $(UNKNOWN) $$(DIGITS)"]
        args: ["--task=$(JOB_COMPLETION_INDEX)"]
        env:
        - {name: DIGITS, value: "2000"}
        - {name: NAMED, value: "pi-$(DIGITS)-$(LATER)"}
        - {name: LATER, value: "x"}
        - {name: KEY, valueFrom: {secretKeyRef: {name: a, key: b}}}
        resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}}
        volumeMounts:
        - {name: d, mountPath: /workspace/volume/d}
        - {name: p, mountPath: /p, readOnly: true}
        - {name: c, mountPath: /c}
      volumes:
      - {name: d, hostPath: {path: /srv/d}}
      - {name: p, hostPath: {path: /srv/p}}
      - {name: c, configMap: {name: x}}
"""


@pytest.mark.req("LA-70")
def test_a_job_of_kubernetes_with_all_that_has_a_counterpart() -> None:
    spec, notes = taken(INDEXED)
    assert (spec.name, spec.project, spec.image, spec.hold) == ("pi", "math", "perl:5.34.0", True)
    assert spec.labels == {"team": "nlp", "app.kubernetes.io/name": "pi"}
    assert spec.specs == (NodeSpec(cpus=2, memory_mib=1024, card_milli=1000),)
    assert spec.env == {"DIGITS": "2000", "NAMED": "pi-2000-$(LATER)", "LATER": "x"}
    assert spec.array is not None
    assert (sorted(spec.array.indices), spec.array.at_once) == ([0, 1, 2, 3, 4], 2)
    assert (spec.time_limit_seconds, spec.grace_seconds, spec.restart) == (100, 45, Restart(max_restarts=4))
    assert (spec.priority, spec.node_names) == (PriorityWord.URGENT, ("n1", "n2"))
    assert spec.node_selector == {"disk": "ssd", "zone": "a"}
    assert [each.text for each in spec.tolerations] == ["gpu=yes", "*"]
    assert spec.volumes == (Volume(name="d", path="/srv/d"),)
    assert spec.datasets == (Dataset(name="p", path="/srv/p", read_only=True),)
    assert expand(spec.command, {**spec.env, "SLURM_ARRAY_TASK_ID": "3"}) == (
        *("env", "JOB_COMPLETION_INDEX=3", "perl", "-wle", "print 2000 $(UNKNOWN) $(DIGITS)", "--task=3"),
    )
    assert [note.split(":")[0] for note in notes] == [
        "metadata.namespace",
        "spec…env.KEY",
        "spec…resources.requests.cpu=500m",
        "spec…volumeMounts[p]",
        "spec…volumeMounts[c]",
    ]
    assert lost(spec, Form.JOB) == ()


NEVER = {"replicas": 1, "restartPolicy": "Never"}


def pods(command: list[str], image: str = "i", **limits: Any) -> dict[str, Any]:
    container = {"name": "c", "image": image, "command": command, "resources": {"limits": limits}}
    return {"template": {"spec": {"containers": [container]}}}


def manifest(kind: str, version: str, **spec: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})


def tf_job(**roles: int) -> str:
    replicas = {
        role: {"replicas": count, **pods(["python", f"{'ps' if role == 'PS' else 'train'}.py"], cpu=4)}
        for role, count in roles.items()
    }
    return manifest("TFJob", "kubeflow.org/v1", tfReplicaSpecs=replicas)


@pytest.mark.req("LA-70", "LA-20")
def test_a_tf_job_of_workers_and_servers() -> None:
    spec, notes = taken(tf_job(PS=2, Worker=3))
    assert (spec.mode, spec.nodes, spec.parameter_servers) == (Mode.TENSORFLOW, 3, 2)
    assert (spec.command, spec.specs[0].cpus) == ("python train.py", 4)
    assert [note.split(":")[0] for note in notes] == ["spec.tfReplicaSpecs.PS", "spec.tfReplicaSpecs.PS…resources"]
    assert lost(spec, Form.TFJOB) == ()


@pytest.mark.req("LA-70", "LA-62")
def test_a_tf_job_with_a_chief_or_an_evaluator_is_worker_pools() -> None:
    spec, notes = taken(tf_job(Chief=1, PS=2, Worker=3, Evaluator=1))
    assert (spec.mode, notes) == (Mode.WORKER_POOLS, [])
    assert [(pool.replicas, pool.command) for pool in spec.worker_pools] == [
        (1, ""),
        (3, ""),
        (2, "python ps.py"),
        (1, ""),
    ]
    assert lost(spec, Form.TFJOB) == ()
    alone, notes = taken(tf_job(Worker=3, Evaluator=1))
    assert [pool.replicas for pool in alone.worker_pools] == [1, 2, 0, 1]
    assert notes == ["spec.tfReplicaSpecs.Worker: the first of them is the chief, by which the job ends"]


@pytest.mark.req("LA-70", "LA-12")
@pytest.mark.parametrize("version", ["kubeflow.org/v1", "kubeflow.org/v2beta1"])
def test_an_mpi_job_runs_its_launchers_command_on_its_workers_nodes(version: str) -> None:
    launcher = {"replicas": 1, **pods(["mpirun", "-n", "4", "/pi"], cpu=1)}
    worker = {"replicas": 2, **pods(["/usr/sbin/sshd", "-De"], **{"nvidia.com/gpu": 2, "cpu": 1})}
    text = manifest("MPIJob", version, slotsPerWorker=2, mpiReplicaSpecs={"Launcher": launcher, "Worker": worker})
    spec, notes = taken(text)
    assert (spec.mode, spec.nodes, spec.command) == (Mode.HOROVOD, 2, "mpirun -n 4 /pi")
    assert spec.specs[0].card_milli == 2000
    assert notes == ["spec.mpiReplicaSpecs.Launcher: the command runs on the first worker, with the workers' specs"]
    assert lost(spec, Form.MPIJOB) == ()


@pytest.mark.req("LA-70")
def test_a_train_job_is_the_framework_of_its_runtime() -> None:
    trainer = {
        "numNodes": 2,
        "numProcPerNode": 2,
        "image": "i",
        "command": ["torchrun", "/t.py"],
        "resourcesPerNode": {"requests": {"cpu": "4", "nvidia.com/gpu": "2"}},
    }
    text = manifest(
        "TrainJob", "trainer.kubeflow.org/v1alpha1", runtimeRef={"name": "torch-distributed"}, trainer=trainer
    )
    spec, notes = taken(text)
    assert (spec.mode, spec.nodes, spec.specs[0].card_milli) == (Mode.PYTORCH, 2, 2000)
    env = {"WORLD_SIZE": "2", "SLOTS": "2", "RANK": "1", "MASTER_ADDR": "m", "MASTER_PORT": "2222"}
    assert expand(spec.command, env) == (
        *("torchrun", "--nnodes=2", "--nproc_per_node=2", "--node_rank=1", "--master_addr=m", "--master_port=2222"),
        "/t.py",
    )
    assert notes == ["torchrun: has the nodes as options here; the operator gives them as PET_ variables"]
    assert lost(spec, Form.TRAINJOB) == ()


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("reference", [{}, {"name": ""}, {"name": None}])
def test_a_train_job_without_a_runtime_reports_that_none_is_named(reference: dict[str, Any]) -> None:
    text = manifest("TrainJob", "trainer.kubeflow.org/v1alpha1", runtimeRef=reference, trainer={"command": ["run"]})
    spec, notes = taken(text)
    assert (spec.mode, notes) == (Mode.PYTORCH, ["spec.runtimeRef.name: is missing; taken for a runtime of PyTorch"])


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("plugins", "command", "mode"),
    [
        ({"pytorch": ["--master=master"]}, "python t.py", Mode.PYTORCH),
        ({"mpi": [], "ssh": []}, "mpirun t", Mode.HOROVOD),
        ({"ssh": [], "svc": []}, "mpiexec t", Mode.HOROVOD),
        ({"svc": []}, "serve", Mode.PYTORCH),
    ],
)
def test_a_job_of_volcano_is_the_framework_of_its_plugin(plugins: dict[str, Any], command: str, mode: Mode) -> None:
    tasks = [
        {"name": "master", "replicas": 1, **pods(command.split(), cpu=4)},
        {"name": "worker", "replicas": 2, **pods(command.split(), cpu=4)},
    ]
    text = manifest(
        "Job", "batch.volcano.sh/v1alpha1", tasks=tasks, plugins=plugins, queue="research", maxRetry=5, minAvailable=3
    )
    spec, _ = taken(text)
    nodes = 2 if mode is Mode.HOROVOD else 3
    assert (spec.mode, spec.nodes, spec.command) == (mode, nodes, command)
    assert (spec.partitions, spec.restart) == (("research",), Restart(max_restarts=5))
    assert lost(spec, Form.VOLCANOJOB) == ()


@pytest.mark.req("LA-70")
def test_servers_of_volcano_are_parameter_servers_beside_the_workers() -> None:
    tasks = [
        {"name": "ps", "replicas": 2, **pods(["run", "--ps"], cpu=1)},
        {"name": "worker", "replicas": 3, **pods(["run", "--worker"], cpu=4)},
    ]
    text = manifest("Job", "batch.volcano.sh/v1alpha1", tasks=tasks, plugins={"tensorflow": []})
    spec, notes = taken(text)
    assert (spec.mode, spec.parameter_servers, spec.nodes) == (Mode.TENSORFLOW, 2, 3)
    assert (spec.command, spec.specs) == ("run --worker", (NodeSpec(cpus=4),))
    assert "spec.tasks.ps: all replicas get the worker's command" in notes


@pytest.mark.req("LA-70")
def test_one_task_of_volcano_is_a_job_without_a_mode() -> None:
    tasks = [{"name": "only", "replicas": 1, **pods(["run"], cpu=4)}]
    spec, notes = taken(manifest("Job", "batch.volcano.sh/v1alpha1", tasks=tasks))
    assert (spec.mode, spec.nodes, spec.command, notes) == (None, 1, "run", [])


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("command", "nodes", "count", "expected"),
    [
        ("torchrun t.py", 1, 4, "torchrun --nproc_per_node=4 t.py"),
        ("torchrun t.py", 1, 2, "torchrun --nproc_per_node=2 t.py"),
        ("/opt/bin/torchrun --standalone t.py", 1, 4, "/opt/bin/torchrun --nproc_per_node=4 --standalone t.py"),
        ("torchrun --nproc-per-node=1 t.py", 1, 4, "torchrun --nproc-per-node=1 t.py"),
        (
            "torchrun --nnodes=2 --node_rank=$(RANK) t.py",
            2,
            4,
            "torchrun --nproc_per_node=4 --nnodes=2 --node_rank=1 t.py",
        ),
        (
            "torchrun --nproc_per_node=2 t.py",
            2,
            4,
            "torchrun --nnodes=2 --node_rank=1 --master_addr=m --master_port=2222 --nproc_per_node=2 t.py",
        ),
        (
            "python3 -u -m torch.distributed.run t.py",
            1,
            4,
            "python3 -u -m torch.distributed.run --nproc_per_node=4 t.py",
        ),
        ("python t.py -m torch.distributed.run x", 1, 4, "python t.py -m torch.distributed.run x"),
    ],
)
def test_a_launcher_of_pytorch_starts_as_many_processes_as_the_operator_says(
    command: str, nodes: int, count: int, expected: str
) -> None:
    text = manifest(
        "PyTorchJob",
        "kubeflow.org/v1",
        nprocPerNode=str(count),
        pytorchReplicaSpecs={
            name: {**NEVER, **pods(command.split(), **{"nvidia.com/gpu": 4})} for name in ("Master", "Worker")[:nodes]
        },
    )
    spec, notes = taken(text)
    env = {"WORLD_SIZE": str(nodes), "SLOTS": "4", "RANK": "1", "MASTER_ADDR": "m", "MASTER_PORT": "2222"}
    assert expand(spec.command, env) == tuple(expected.split())
    assert lost(spec, Form.PYTORCHJOB) == ()
    assert [note.partition(":")[0] for note in notes] in ([], ["torchrun"])


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(("count", "expected"), [("auto", "4"), ("4", "4"), (2, "2")])
def test_the_launcher_of_a_train_job_has_its_processes_on_one_node_too(count: object, expected: str) -> None:
    trainer = {
        "command": ["torchrun", "t.py"],
        "numProcPerNode": count,
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}},
    }
    reference = {"name": "torch-distributed"}
    spec, _ = taken(manifest("TrainJob", "trainer.kubeflow.org/v1alpha1", runtimeRef=reference, trainer=trainer))
    assert expand(spec.command, {"SLOTS": "4"}) == ("torchrun", f"--nproc_per_node={expected}", "t.py")


@pytest.mark.req("LA-70")
def test_labels_of_the_job_and_of_its_pods_are_all_labels() -> None:
    template = {"metadata": {"labels": {"a": "pod", "b": "pod"}}, "spec": {"containers": [{"command": ["run"]}]}}
    document = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "x", "labels": {"a": "job", "c": "job"}},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
    }
    assert taken(json.dumps(document))[0].labels == {"a": "pod", "b": "pod", "c": "job"}


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("command", "mode", "names"),
    [
        ("run --index $VC_TASK_INDEX", "pytorch", ["VC_TASK_INDEX"]),
        (
            "mpirun --hostfile /etc/volcano/mpiworker.host -n $VC_WORKER_NUM t",
            "mpi",
            ["/etc/volcano/mpiworker.host", "VC_WORKER_NUM"],
        ),
        ("run --index $VK_TASK_INDEX", "tensorflow", []),
    ],
)
def test_variables_of_volcanos_plugins_without_a_counterpart_are_reported(
    command: str, mode: str, names: list[str]
) -> None:
    tasks = [{"name": name, "replicas": 1, **pods(["sh", "-c", command], cpu=4)} for name in ("master", "worker")]
    text = manifest("Job", "batch.volcano.sh/v1alpha1", tasks=tasks, plugins={mode: [], "env": [], "svc": []})
    assert [note.partition(":")[0] for note in taken(text)[1] if "plugin of Volcano" in note] == names


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("kind", "version"),
    [("JobSet", "jobset.x-k8s.io/v1alpha2"), ("RayJob", "ray.io/v1"), ("Pod", "v1"), ("CronJob", "batch/v1")],
)
def test_another_kind_of_kubernetes_is_refused_by_its_name(kind: str, version: str) -> None:
    with pytest.raises(SpecErrors) as refused:
        taken_over("x.yaml", manifest(kind, version))
    (error,) = refused.value.errors
    assert error.startswith(
        f"x.yaml: is a {kind} ({version}) of Kubernetes; only these can become a job here: PyTorchJob"
    )


@pytest.mark.req("LA-70")
def test_a_launcher_within_a_shell_is_reported() -> None:
    text = manifest(
        "PyTorchJob",
        "kubeflow.org/v1",
        pytorchReplicaSpecs={"Master": {**NEVER, **pods(["bash", "-c", "cd /x && torchrun t.py"], cpu=1)}},
    )
    assert taken(text)[1] == [
        "torchrun: is called by a shell, and has no PET_ variables here; give it --nproc_per_node=N"
    ]


@pytest.mark.req("LA-70")
def test_a_role_without_a_restart_policy_has_the_operators_own() -> None:
    roles = {"Master": {"replicas": 1, **pods(["run"], cpu=1)}}
    note = "spec…Master.restartPolicy=OnFailure: no container restarts by itself"
    assert any(each.startswith(note) for each in taken(torch_job(pytorchReplicaSpecs=roles))[1])
    # OnFailure with a limit is what `restart` says, so that nothing is lost.
    spec, notes = taken(torch_job(pytorchReplicaSpecs=roles, runPolicy={"backoffLimit": 2}))
    assert (spec.restart and spec.restart.max_restarts, notes) == (2, [])
    elastic = {
        "elasticPolicy": {"minReplicas": 1, "maxReplicas": 4},
        "pytorchReplicaSpecs": {"Worker": roles["Master"]},
    }
    assert (found := taken(torch_job(**elastic))[0].elastic) is not None
    assert found.worker_restart_policy == WorkerRestart.ON_FAILURE
    # The operator's other kinds never restart a container unless the manifest says so.
    assert not any(
        "restartPolicy" in each
        for each in taken(manifest("TFJob", "kubeflow.org/v1", tfReplicaSpecs={"Worker": roles["Master"]}))[1]
    )


def torch_job(**spec: object) -> str:
    return manifest("PyTorchJob", "kubeflow.org/v1", **spec)


@pytest.mark.req("LA-70", "EL-07")
def test_an_elastic_job_replaces_its_workers_as_they_say() -> None:
    worker = {"replicas": 2, "restartPolicy": "ExitCode", **pods(["torchrun", "t.py"], cpu=1)}
    text = manifest(
        "PyTorchJob",
        "kubeflow.org/v1",
        elasticPolicy={"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 7},
        pytorchReplicaSpecs={"Worker": worker},
    )
    spec, notes = taken(text)
    assert spec.elastic is not None
    assert (spec.elastic.worker_restart_policy, spec.elastic.backoff_limit) == (WorkerRestart.EXIT_CODE, 7)
    assert (spec.command, notes) == (
        "python3 -m cockpit.elastic_torchrun t.py",
        ["torchrun: is run by cockpit.elastic_torchrun, and again when the workers change"],
    )
    assert lost(spec, Form.PYTORCHJOB) == ()


@pytest.mark.req("LA-70", "EL-12")
@pytest.mark.parametrize(
    ("command", "runs", "written_as"),
    [
        (
            ["python", "-u", "-m", "torch.distributed.run", "--rdzv_backend=c10d", "./t.py", "--lr=1"],
            "python -u -m cockpit.elastic_torchrun ./t.py --lr=1",
            "python -u -m torch.distributed.run ./t.py --lr=1",
        ),
        (
            ["torchrun", "--nproc_per_node=2", "t.py"],
            "python3 -m cockpit.elastic_torchrun --nproc_per_node=2 t.py",
            "python3 -m torch.distributed.run --nproc_per_node=2 t.py",
        ),
        (["torchrun", "--rdzv_backend=etcd", "t.py"], "torchrun --rdzv_backend=etcd t.py", None),
        (["torchrun", "--nnodes=1:3", "t.py"], "torchrun --nnodes=1:3 t.py", None),
        (["bash", "-c", "torchrun t.py"], 'bash -c "torchrun t.py"', None),
        (["python", "t.py"], "python t.py", None),
    ],
)
def test_an_elastic_job_of_the_training_operator_runs_with_changing_workers(
    command: list[str], runs: str, written_as: str | None
) -> None:
    worker = {"replicas": 2, "restartPolicy": "OnFailure", **pods(command, cpu=1)}
    policy = {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 2}
    spec, notes = taken(
        manifest("PyTorchJob", "kubeflow.org/v1", elasticPolicy=policy, pytorchReplicaSpecs={"Worker": worker})
    )
    assert spec.command == runs
    assert any("elastic_torchrun" in each for each in notes) is (command[0] != "python" or written_as is not None)
    again = written(spec, Form.PYTORCHJOB, lambda source, text: read_jobs(source, text, "/", defaults=Defaults())).text
    assert "cockpit.elastic_torchrun" not in again
    assert yaml.safe_load(again)["spec"]["elasticPolicy"]["rdzvBackend"] == "c10d"
    if written_as is not None:
        pod = yaml.safe_load(again)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        assert " ".join([*pod["command"], *pod.get("args", [])]) == written_as


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("container", "command"),
    [
        ({"image": "i"}, "entrypoint"),
        ({"image": "i", "args": ["--lr", "1"]}, "entrypoint --lr 1"),
        ({"image": "i", "command": ["run"], "args": ["--lr", "1"]}, "run --lr 1"),
    ],
)
def test_without_a_command_the_images_own_runs(container: dict[str, Any], command: str) -> None:
    text = manifest("Job", "batch/v1", template={"spec": {"containers": [{"name": "c", **container}]}})
    spec, notes = taken(text)
    assert spec.command == command
    assert [note.split(":")[0] for note in notes] == (["command"] if command.startswith("entrypoint") else [])
    assert lost(spec, Form.JOB) == ()


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


@pytest.mark.req("LA-70")
def test_documents_beside_the_job_are_named() -> None:
    _, notes = taken(f"{SERVICE}---\n{INDEXED}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\n---\n")
    assert notes[-1] == "the other documents of the file: Service web, ConfigMap x left out"


@pytest.mark.req("LA-70")
def test_a_list_may_contain_a_job() -> None:
    job = json.loads(tf_job(Worker=2))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [service, job]})
    assert form_of(text) is Form.TFJOB
    spec, notes = taken(text)
    assert (spec.nodes, notes[-1]) == (2, "the other documents of the file: Service web left out")
    with pytest.raises(SpecErrors, match="there are 2 jobs in it; give one"):
        taken(json.dumps({"apiVersion": "v1", "kind": "List", "items": [job, job]}))


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("text", "form"),
    [
        (INDEXED, Form.JOB),
        (INDEXED.replace("batch/v1", "batch.volcano.sh/v1alpha1"), Form.VOLCANOJOB),
        (SERVICE, None),
        ("name: x\nkind: batch\noutput: .\ntasks: []\n", None),
        ("name: x\ncommand: 'echo kind: Job'\noutput: .\n", None),
        ("apiVersion: batch/v2\nkind: CronJob\n", None),
    ],
)
def test_a_manifest_is_recognised_by_kind_and_group(text: str, form: Form | None) -> None:
    assert form_of(text) is form


@pytest.mark.req("LA-70")
def test_every_format_is_offered() -> None:
    assert {*FORMS} == {str(form) for form in Form}


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("form", [Form.PYTORCHJOB, Form.TFJOB, Form.MPIJOB, Form.TRAINJOB, Form.JOB, Form.VOLCANOJOB])
def test_every_manifest_format_is_read_back(form: Form) -> None:
    modes = {Form.TFJOB: Mode.TENSORFLOW, Form.MPIJOB: Mode.HOROVOD, Form.JOB: None}
    job = JobSpec(
        name="x",
        mode=modes.get(form, Mode.PYTORCH),
        nodes=1 if form is Form.JOB else 3,
        command="python3 t.py --lr=$LR '$(LR)' \"$LR b\"",
        output="/home/ann/x",
        image="i",
        env={"LR": "0.1", "ODD": "$(LR) $$ $x"},
        labels={"team": "nlp"},
        project="vision",
        specs=(NodeSpec(cpus=4, memory_mib=2048, card_milli=2000),),
    )
    assert lost(job, form) == ()
    fuller = JobSpec(
        **{
            field: getattr(job, field)
            for field in ("name", "mode", "nodes", "command", "output", "image", "env", "specs")
        },
        grace_seconds=77,
        node_selector={"disk": "ssd"},
        volumes=(Volume(name="d", path="/srv/d"),),
        datasets=(Dataset(name="p", path="/srv/p", read_only=True),),
        priority=PriorityWord.URGENT,
        restart=Restart(max_restarts=2),
        time_limit_seconds=1234,
    )
    if form is not Form.TRAINJOB:
        assert lost(fuller, form) == ()


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("limits", "restarts"),
    [
        ("{}", 6),
        ("{backoffLimit: null}", 6),
        ("{backoffLimit: 0}", None),
        ("{backoffLimit: 2}", 2),
        ("{backoffLimitPerIndex: 1, completionMode: Indexed, completions: 2}", None),
    ],
)
def test_a_job_without_a_limit_of_retries_gets_that_of_kubernetes(limits: str, restarts: int | None) -> None:
    pod = '{"restartPolicy": "Never", "containers": [{"name": "c", "command": ["run"]}]}'
    spec = f"{limits[:-1]}{', ' if len(limits) > 2 else ''}template: {{spec: {pod}}}}}"
    job, _ = taken(f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: x}}\nspec: {spec}\n")
    assert (job.restart.max_restarts if job.restart is not None else None) == restarts


@pytest.mark.req("LA-70")
def test_two_parts_of_one_folder_are_two_volumes_and_a_script_keeps_its_lines() -> None:
    text = """apiVersion: batch/v1
kind: Job
metadata: {name: x}
spec:
  template:
    spec:
      volumes: [{name: d, hostPath: {path: /srv/d}}]
      containers:
      - name: c
        command:
        - sh
        - -c
        - |
          // kept
          run
        volumeMounts:
        - {name: d, mountPath: /a, subPath: a}
        - {name: d, mountPath: /b, subPath: b}
"""
    spec, notes = taken(text)
    assert expand(spec.command, {})[2] == "// kept\nrun\n"
    assert [(each.name, each.path) for each in spec.volumes] == [("d", "/srv/d/a"), ("d-2", "/srv/d/b")]
    assert [note.partition(" instead")[0] for note in notes] == [
        "spec…volumeMounts[d]: is shown as /workspace/volume/d",
        "spec…volumeMounts[d]: is shown as /workspace/volume/d-2",
    ]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("field", ["podTemplateOverrides", "podSpecOverrides", "runtimePatches"])
def test_a_train_job_that_changes_the_pods_of_its_runtime_is_refused_with_the_field(field: str) -> None:
    text = f"""apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: x}}
spec:
  runtimeRef: {{name: torch-distributed}}
  trainer: {{numNodes: 2, command: [python, t.py]}}
  {field}: [{{targetJobs: [{{name: node}}], spec: {{nodeSelector: {{zone: a}}}}}}]
"""
    with pytest.raises(SpecErrors, match=rf"spec\.{field} changes the pods of the runtime.*cockpit convert"):
        taken_over("file", text)


@pytest.mark.req("LA-70")
def test_an_mpi_job_of_the_first_api_version_is_refused_with_its_fields() -> None:
    text = """apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: x}
spec:
  gpus: 16
  template: {spec: {containers: [{image: i, name: main, command: [mpirun, ./a.out]}]}}
"""
    with pytest.raises(SpecErrors, match=r"spec\.gpus, spec\.template .*v1alpha1.*mpiReplicaSpecs"):
        taken_over("file", text)
