"""Every documented field of each form is carried over or noted: none is dropped without a word.

The fields are those of the public types: core/v1 PodSpec, Container and ObjectMeta, batch/v1 JobSpec, the training
operator's kubeflow.org/v1, the trainer's v1alpha1, Volcano's batch.volcano.sh/v1alpha1, Vertex AI's CustomJob, and the
help of arena and gcloud.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.exchange import taken_over

CONTAINER = {"name": "main", "image": "i", "command": ["run"]}
POD = {"spec": {"containers": [CONTAINER]}}
REPLICA = {"replicas": 2, "template": POD}
MANIFESTS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "Job": (
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"template": POD}},
        ("spec", "template"),
    ),
    "PyTorchJob": (
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "x"},
            "spec": {"pytorchReplicaSpecs": {"Worker": REPLICA}},
        },
        ("spec", "pytorchReplicaSpecs", "Worker", "template"),
    ),
    "TFJob": (
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": "x"},
            "spec": {"tfReplicaSpecs": {"Worker": REPLICA}},
        },
        ("spec", "tfReplicaSpecs", "Worker", "template"),
    ),
    "MPIJob": (
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "x"},
            "spec": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": POD}, "Worker": REPLICA}},
        },
        ("spec", "mpiReplicaSpecs", "Worker", "template"),
    ),
    "VolcanoJob": (
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "x"},
            "spec": {"tasks": [{"name": "worker", **REPLICA}], "plugins": {"pytorch": []}},
        },
        ("spec", "tasks", 0, "template"),
    ),
    "TrainJob": (
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "x"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"command": ["run"]}},
        },
        (),
    ),
    "CustomJob": (
        {
            "displayName": "x",
            "jobSpec": {"workerPoolSpecs": [{"replicaCount": 1, "containerSpec": {"command": ["a"]}}]},
        },
        (),
    ),
}
POD_FIELDS: dict[str, Any] = {
    "activeDeadlineSeconds": 7,
    "automountServiceAccountToken": False,
    "dnsConfig": {"a": 1},
    "dnsPolicy": "None",
    "affinity": {"podAffinity": {"x": 1}},
    "enableServiceLinks": False,
    "ephemeralContainers": [{"name": "e"}],
    "hostAliases": [{"ip": "1.1.1.1"}],
    "hostIPC": True,
    "hostNetwork": True,
    "hostPID": True,
    "hostUsers": False,
    "hostname": "h",
    "imagePullSecrets": [{"name": "s"}],
    "initContainers": [{"name": "i"}],
    "nodeName": "n1",
    "nodeSelector": {"a": "b"},
    "os": {"name": "linux"},
    "overhead": {"cpu": 1},
    "preemptionPolicy": "Never",
    "priority": 7,
    "priorityClassName": "high",
    "readinessGates": [{"a": 1}],
    "resourceClaims": [{"name": "c"}],
    "resources": {"limits": {"cpu": 1}},
    "runtimeClassName": "r",
    "schedulerName": "s",
    "schedulingGates": [1],
    "securityContext": {"runAsUser": 1},
    "serviceAccount": "s",
    "serviceAccountName": "s",
    "subdomain": "s",
    "setHostnameAsFQDN": True,
    "shareProcessNamespace": True,
    "terminationGracePeriodSeconds": 77,
    "tolerations": [{"key": "a"}],
    "topologySpreadConstraints": [{"a": 1}],
    "volumes": [{"name": "v"}],
    "restartPolicy": "Always",
}
CONTAINER_FIELDS: dict[str, Any] = {
    "args": ["a"],
    "command": ["b"],
    "env": [{"name": "A", "value": "b"}],
    "envFrom": [{"a": 1}],
    "image": "j",
    "imagePullPolicy": "Always",
    "lifecycle": {"a": 1},
    "livenessProbe": {"a": 1},
    "ports": [{"containerPort": 1}],
    "readinessProbe": {"a": 1},
    "resizePolicy": [1],
    "resources": {"limits": {"cpu": 3}},
    "restartPolicy": "Always",
    "securityContext": {"privileged": True},
    "startupProbe": {"a": 1},
    "stdin": True,
    "stdinOnce": True,
    "terminationMessagePath": "/x",
    "terminationMessagePolicy": "File",
    "tty": True,
    "volumeDevices": [1],
    "volumeMounts": [{"name": "m", "mountPath": "/m"}],
    "workingDir": "/w",
}
RESOURCE_NAMES = (
    *("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu"),
    *("gpu.intel.com/i915", "cambricon.com/mlu", "huawei.com/Ascend910", "hygon.com/dcu", "aliyun.com/gpu-mem"),
    *("google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi", "rdma/hca"),
)
METADATA_FIELDS: dict[str, Any] = {
    "namespace": "ns",
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["f"],
    "uid": "u",
    "generateName": "g-",
    "ownerReferences": [{"name": "o"}],
    "resourceVersion": "1",
    "generation": 1,
}
RUN_POLICY: dict[str, Any] = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 0,
    "activeDeadlineSeconds": 9,
    "backoffLimit": 5,
    "suspend": True,
    "managedBy": "m",
    "schedulingPolicy": {"queue": "q"},
}
SCHEDULING: dict[str, Any] = {
    "minAvailable": 1,
    "queue": "q",
    "minResources": {"cpu": 1},
    "priorityClass": "p",
    "scheduleTimeoutSeconds": 5,
}
ELASTIC: dict[str, Any] = {
    "minReplicas": 1,
    "maxReplicas": 4,
    "rdzvBackend": "c10d",
    "rdzvPort": 1,
    "rdzvHost": "h",
    "rdzvId": "i",
    "rdzvConf": [{"key": "a"}],
    "standalone": True,
    "nProcPerNode": 3,
    "maxRestarts": 7,
    "metrics": [{"type": "a"}],
}
SPECS: dict[str, dict[str, Any]] = {
    "Job": {
        "activeDeadlineSeconds": 7,
        "backoffLimit": 2,
        "backoffLimitPerIndex": 1,
        "completionMode": "Indexed",
        "completions": 4,
        "managedBy": "m",
        "manualSelector": True,
        "maxFailedIndexes": 1,
        "parallelism": 3,
        "podFailurePolicy": {"a": 1},
        "podReplacementPolicy": "Failed",
        "selector": {"a": 1},
        "suspend": True,
        "successPolicy": {"a": 1},
        "ttlSecondsAfterFinished": 0,
    },
    "PyTorchJob": {"runPolicy": {"suspend": True}, "elasticPolicy": {"minReplicas": 1}, "nprocPerNode": "3"},
    "TFJob": {"successPolicy": "AllWorkers", "enableDynamicWorker": True, "runPolicy": {"suspend": True}},
    "MPIJob": {
        "slotsPerWorker": 3,
        "cleanPodPolicy": "All",
        "mainContainer": "m",
        "runLauncherAsWorker": True,
        "sshAuthMountPath": "/x",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "MPICH",
        "runPolicy": {"suspend": True},
    },
    "VolcanoJob": {
        "schedulerName": "volcano",
        "minAvailable": 1,
        "volumes": [{"mountPath": "/m", "volumeClaimName": "c"}],
        "policies": [{"event": "PodEvicted"}],
        "runningEstimate": "1h",
        "queue": "q",
        "maxRetry": 5,
        "minSuccess": 1,
        "ttlSecondsAfterFinished": 0,
        "priorityClassName": "p",
        "networkTopology": {"mode": "hard"},
    },
    "TrainJob": {
        "suspend": True,
        "managedBy": "m",
        "activeDeadlineSeconds": 7,
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "initializer": {"model": {"storageUri": "hf://x"}},
        "runtimePatches": [{"manager": "m"}],
        "podTemplateOverrides": [{"a": 1}],
        "podSpecOverrides": [{"a": 1}],
    },
    "CustomJob": {
        "labels": {"a": "b"},
        "encryptionSpec": {"kmsKeyName": "k"},
        "name": "n",
        "error": {"code": 1},
        "satisfiesPzs": True,
        "startTime": "t",
    },
}
CUSTOM_JOB_SPEC: dict[str, Any] = {
    "persistentResourceId": "p",
    "scheduling": {"timeout": "9s"},
    "serviceAccount": "s",
    "network": "n",
    "reservedIpRanges": ["r"],
    "pscInterfaceConfig": {"a": 1},
    "baseOutputDirectory": {"outputUriPrefix": "gs://x"},
    "protectedArtifactLocationId": "p",
    "tensorboard": "t",
    "enableWebAccess": True,
    "enableDashboardAccess": True,
    "experiment": "e",
    "experimentRun": "e",
    "models": ["m"],
}
VERTEX_SCHEDULING: dict[str, Any] = {
    "timeout": "9s",
    "restartJobOnWorkerRestart": True,
    "strategy": "SPOT",
    "disableRetries": True,
    "maxWaitDuration": "60s",
}
POOL: dict[str, Any] = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "nfsMounts": [{"a": 1}],
    "lustreMounts": [{"a": 1}],
    "diskSpec": {"bootDiskSizeGb": 7},
}
MACHINE: dict[str, Any] = {
    "machineType": "n1-standard-4",
    "acceleratorType": "NVIDIA_TESLA_T4",
    "acceleratorCount": 2,
    "tpuTopology": "2x2",
    "reservationAffinity": {"a": 1},
    "gpuPartitionSize": "1g.5gb",
}


def read(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    found = taken_over("file.json", json.dumps(document))
    assert found is not None
    return json.loads(found.text), list(found.notes)


def with_field(document: dict[str, Any], path: tuple[Any, ...], value: object) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place: Any = changed
    for each in path[:-1]:
        place = place[each] if isinstance(each, int) else place.setdefault(each, {})
    place[path[-1]] = value
    return changed


def is_carried_noted_or_refused(document: dict[str, Any], path: tuple[Any, ...], value: object) -> bool:
    values, notes = read(document)
    try:
        changed_values, changed_notes = read(with_field(document, path, value))
    except SpecErrors as refused:
        return str(path[-1]) in str(refused)
    return changed_values != values or any(note not in notes for note in changed_notes)


PODS = [kind for kind, (_, template) in MANIFESTS.items() if template]
CASES = [
    *((kind, (*MANIFESTS[kind][1], "spec", name), value) for kind in PODS for name, value in POD_FIELDS.items()),
    *(
        (kind, (*MANIFESTS[kind][1], "spec", "containers", 0, name), value)
        for kind in PODS
        for name, value in CONTAINER_FIELDS.items()
        if kind != "MPIJob" or name not in {"args", "command"}  # a worker's own: it waits for the launcher
    ),
    *((kind, (*MANIFESTS[kind][1], "metadata", "labels"), {"l": "v"}) for kind in PODS),
    *((kind, (*MANIFESTS[kind][1], "metadata", "annotations"), {"l": "v"}) for kind in PODS),
    *(
        (kind, (*MANIFESTS[kind][1], "spec", "containers", 0, "resources", which, name), "3")
        for kind in ("Job", "PyTorchJob")
        for which in ("limits", "requests")
        for name in RESOURCE_NAMES
    ),
    *(("Job", (*MANIFESTS["Job"][1], "spec", "containers", 0, "resources", "claims"), [{"name": "c"}]) for _ in (1,)),
    *(
        (kind, ("metadata", name), value)
        for kind in MANIFESTS
        for name, value in METADATA_FIELDS.items()
        if kind != "CustomJob" and name != "generateName"
    ),
    *((kind, ("spec", name), value) for kind in SPECS for name, value in SPECS[kind].items() if kind != "CustomJob"),
    *(
        (kind, ("spec", "runPolicy", name), value)
        for kind in ("PyTorchJob", "TFJob", "MPIJob")
        for name, value in RUN_POLICY.items()
    ),
    *(("PyTorchJob", ("spec", "runPolicy", "schedulingPolicy", name), value) for name, value in SCHEDULING.items()),
    *(("PyTorchJob", ("spec", "elasticPolicy", name), value) for name, value in ELASTIC.items()),
    *(
        ("VolcanoJob", ("spec", "plugins", name), ["--x"])
        for name in ("tensorflow", "mpi", "ray", "hcclrank", "pytorch")
    ),
    *(
        ("VolcanoJob", ("spec", "tasks", 0, name), value)
        for name, value in {
            "minAvailable": 1,
            "policies": [{"event": "PodFailed"}],
            "topologyPolicy": "none",
            "maxRetry": 1,
            "dependsOn": {"name": ["a"]},
            "partitionPolicy": {"a": 1},
            "replicas": 5,
        }.items()
    ),
    *(
        ("TrainJob", ("spec", "trainer", name), value)
        for name, value in {
            "image": "j",
            "command": ["b"],
            "args": ["a"],
            "env": [{"name": "A", "value": "b"}],
            "numNodes": 3,
            "resourcesPerNode": {"limits": {"cpu": 3}},
            "numProcPerNode": 3,
        }.items()
    ),
    *(("TrainJob", ("spec", "runtimeRef", name), "other") for name in ("name", "apiGroup", "kind")),
    *(("CustomJob", (name,), value) for name, value in SPECS["CustomJob"].items()),
    *(("CustomJob", ("jobSpec", name), value) for name, value in CUSTOM_JOB_SPEC.items()),
    *(("CustomJob", ("jobSpec", "scheduling", name), value) for name, value in VERTEX_SCHEDULING.items()),
    *(("CustomJob", ("jobSpec", "workerPoolSpecs", 0, name), value) for name, value in POOL.items()),
    *(("CustomJob", ("jobSpec", "workerPoolSpecs", 0, "machineSpec", name), value) for name, value in MACHINE.items()),
    *(
        ("CustomJob", ("jobSpec", "workerPoolSpecs", 0, "containerSpec", name), value)
        for name, value in {
            "imageUri": "i",
            "command": ["b"],
            "args": ["a"],
            "env": [{"name": "A", "value": "b"}],
        }.items()
    ),
]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("kind", "path", "value"), CASES, ids=[f"{kind}:{'.'.join(map(str, path))}" for kind, path, _ in CASES]
)
def test_no_field_of_a_manifest_is_dropped_silently(kind: str, path: tuple[Any, ...], value: object) -> None:
    assert is_carried_noted_or_refused(MANIFESTS[kind][0], path, value)


ARENA = {
    "all": """
        --name=y --image=i --gpus=2 --device=amd.com/gpu=1 --workers=3 --retry=2 --working-dir=/w --env=A=b
        --data=c:/d
        --data-dir=/d --annotation=a=b --label=a=b --rdma --gang --priority=p --queue --toleration=a --selector=a=b
        --config-file=a:b --image-pull-secret=s --image-pull-policy=Never --shell=bash --scheduler=s --hostNetwork
        --hostIPC
        --hostPID --model-name=m --model-source=s --namespace=n --loglevel=debug --arena-namespace=a --config=c
        --pprof --trace
        --sync-mode=git --sync-source=s --sync-image=i --tensorboard --tensorboard-image=i --logdir=/l
    """,
    "etjob": """
        --cpu=2 --memory=2Gi --max-workers=9 --min-workers=1 --spot-instance --max-wait-time=9 --launcher-selector=a=b
        --job-restart-policy=OnFailure --worker-restart-policy=Always --job-backoff-limit=4 --ssh-secret=s
        --launcher-annotation=a=b --worker-annotation=a=b
    """,
    "mpijob": "--cpu=2 --memory=2Gi --gputopology --mounts-on-launcher --clean-task-policy=All",
    "horovodjob": "--ssh-port=22 --cpu=2 --memory=2Gi",
    "pytorchjob": """
        --clean-task-policy=All --cpu=2 --memory=2Gi --running-timeout=1h --ttl-after-finished=1h --share-memory=1Gi
        --nproc-per-node=7
    """,
    "tfjob": """
        --worker-image=i --ps-image=i --ps=2 --ps-port=1 --worker-port=1 --worker-cpu=2 --worker-cpu-limit=2
        --worker-memory=2Gi --worker-memory-limit=2Gi --worker-affinity-policy=spread
        --worker-affinity-constraint=required
        --ps-cpu=2 --ps-cpu-limit=2 --ps-gpus=1 --ps-memory=2Gi --ps-memory-limit=2Gi --ps-affinity-policy=spread
        --ps-affinity-constraint=required --success-policy=AllWorkers --clean-task-policy=All --running-timeout=1h
        --starting-timeout=1h --ttl-after-finished=1h --chief --evaluator --chief-cpu=2 --chief-cpu-limit=2
        --chief-memory=2Gi
        --chief-memory-limit=2Gi --evaluator-cpu=2 --evaluator-cpu-limit=2 --evaluator-memory=2Gi
        --evaluator-memory-limit=2Gi
        --chief-port=1 --worker-selector=a=b --chief-selector=a=b --evaluator-selector=a=b --ps-selector=a=b
        --role-sequence=w,p --share-memory=1Gi --workerImage=i --psCpu=2 --ChiefMemory=1Gi --cleanTaskPolicy=All
    """,
    "deepspeedjob": """
        --cpu=2 --memory=2Gi --launcher-selector=a=b --job-restart-policy=OnFailure --job-backoff-limit=4
        --ssh-secret=s
        --launcher-annotation=a=b --worker-annotation=a=b
    """,
}
GCLOUD = """
    --region=r --project=p --args=a --command=c --enable-dashboard-access --enable-web-access --labels=a=b --network=n
    --persistent-resource-id=p --python-package-uris=gs://x --service-account=s --kms-key=k --kms-keyring=k
    --kms-location=l --kms-project=p --worker-pool-spec=replica-count=2 --quiet --verbosity=debug --format=json
"""
GCLOUD_POOL = """
    machine-type=n1-standard-4 accelerator-type=NVIDIA_TESLA_T4 accelerator-count=2 container-image-uri=j
    executor-image-uri=e output-image-uri=o local-package-path=l script=s python-module=m requirements=r
    extra-packages=e extra-dirs=d boot-disk-type=pd-ssd boot-disk-size=9 reservation-affinity=any tpu-topology=2x2
"""


def read_line(text: str) -> tuple[dict[str, Any], list[str]]:
    found = taken_over("file", text)
    assert found is not None
    return json.loads(found.text), sorted(found.notes)


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        *(
            (kind, option)
            for kind in ARENA
            if kind != "all"
            for option in [*ARENA["all"].split(), *ARENA[kind].split()]
        ),
        *(("pytorchjob", option) for option in ("-e A=b", "-d c:/d", "-a a=b", "-l a=b", "-p high", "-n ns")),
    ],
)
def test_an_option_of_arena_is_carried_over_or_noted(kind: str, option: str) -> None:
    base = read_line(f"arena submit {kind} --name=x 'run it'")
    changed = read_line(f"arena submit {kind} --name=x {option} 'run it'")
    usual = {"--job-backoff-limit=4"} if kind == "deepspeedjob" else set()
    assert changed != base or option in usual
    assert changed[0]["command"] == "run it"


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    "option",
    [
        *("--loglevel info", "--loglevel=debug", "-n ns", "--namespace ns", "--pprof", "--trace=true"),
        *("--arena-namespace arena-system", "--config /c"),
    ],
)
def test_arenas_global_options_may_stand_before_the_verb(option: str) -> None:
    behind = read_line(f"arena submit pytorchjob {option} --name=x 'run it'")
    assert read_line(f"arena {option} submit pytorchjob --name=x 'run it'") == behind
    assert behind[0]["command"] == "run it"


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("option", GCLOUD.split())
def test_an_option_of_gcloud_is_carried_over_or_noted(option: str) -> None:
    line = "gcloud ai custom-jobs create --display-name=x --worker-pool-spec=container-image-uri=i"
    assert read_line(f"{line} {option}") != read_line(line)


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("key", GCLOUD_POOL.split())
def test_a_key_of_a_pool_of_gcloud_is_carried_over_or_noted(key: str) -> None:
    line = "gcloud ai custom-jobs create --display-name=x --worker-pool-spec=replica-count=1,container-image-uri=i"
    assert read_line(f"{line},{key}") != read_line(line)
