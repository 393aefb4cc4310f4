"""Whatever number stands in a text, every reader of texts gives a value or a sentence."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.config.loading import load_settings
from cockpit.errors import CockpitError
from cockpit.formats import quotatree, snapshotfile, tomltext, trestext, typed_values
from cockpit.formats.bindingevent import read_binding
from cockpit.formats.catalogue.file import read_catalogue
from cockpit.formats.cluster.file import read_cluster
from cockpit.formats.foreign.exchange import taken_over
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.slurm.sacctmgr import association_change, qos_change
from cockpit.formats.slurm.spec import read_slurm_spec
from cockpit.formats.traces import gpu, swf
from cockpit.headless import arguments
from cockpit.headless.play_script import read_script
from cockpit.model import quantity
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.spec import JobSpec
from cockpit.present.filters import compile_filter
from cockpit.present.references import parse_reference
from cockpit.present.tables.all import TABLES
from tests.builders import a_node
from tests.formats.numbers import HOSTILE, variants

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.req("TR-05")
ROOT = Path(__file__).parents[2]
EXPECTED = (CockpitError, ArgumentTypeError)

JOB = """
name: job1
command: python train.py --lr 3
output: /data/out1
algorithm: {path: /code/1, read_only: true}
mode: pytorch
nodes: 2
time_limit: 1h30m
nice: 5
grace_period: 30
priority: normal
dependencies: afterok:12_3,afternotok:7
env: {A: "1"}
begin_at: now+5
specs:
  - {cpus: 4, memory: 2G, cards: 1, card_models: [A100]}
  - {cpus: 2, memory: 1024, cards: 0.5}
restart: {max_restarts: 3}
sweep: {parameters: {lr: [0.1, 2]}, parallel: 2}
debug_hold: {window: 4h}
"""
JSON_JOB = '{"name": "j1", "command": "true", "output": "/o", "nodes": 1, "time_limit": 60, "specs": [{"cpus": 1}]}'
SBATCH = """#!/bin/bash
#SBATCH --job-name=j1
#SBATCH --nodes=2-4
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --gres=gpu:a100:2
#SBATCH --gpus=4
#SBATCH --gpus-per-node=2
#SBATCH --gpus-per-task=1
#SBATCH --time=1-02:03:04
#SBATCH --array=1-10:2%3
#SBATCH --nice=5
#SBATCH --begin=now+1hour
#SBATCH --signal=B:USR1@60
#SBATCH --dependency=afterok:12_3
#SBATCH --open-mode=append
#SBATCH -p gpu
srun -N 1 python train.py
"""
SBATCH_SHARES = """#!/bin/bash
#SBATCH -J j1 -n 2 --gpus-per-task=1 --ntasks-per-gpu=1 --cpus-per-gpu=2 --mem-per-gpu=512
hostname
"""
ARENA = (
    "arena submit pytorch --name=j1 --workers=2 --gpus=1 --cpu=4 --memory=8Gi --image=x:1 --sync-mode=git "
    "--running-timeout=30m --ttl-after-finished=60 --retry=3 --priority=5 --share-memory=2Gi 'python train.py'"
)
ARENA_TF = (
    "arena submit tf --name=j1 --workers=2 --ps=1 --gpus=1 --ps-cpu=4 --ps-memory=8Gi --worker-port=22 'python a.py'"
)
GCLOUD = (
    "gcloud ai custom-jobs create --region=us-central1 --display-name=j1 --worker-pool-spec="
    "machine-type=n1-standard-8,replica-count=2,accelerator-type=NVIDIA_TESLA_V100,accelerator-count=1,"
    "container-image-uri=gcr.io/x/y:1,disk-size=100"
)
PYTORCHJOB = (
    (ROOT / "tests/formats/foreign/simple-pytorchjob.yaml").read_text()
    + """
"""
)
PYTORCHJOB_MORE = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j1, annotations: {kube-queue/priority: "5"}}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 100, nProcPerNode: 2}
  runPolicy: {activeDeadlineSeconds: 60, backoffLimit: 3, ttlSecondsAfterFinished: 60}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          priority: 5
          terminationGracePeriodSeconds: 30
          containers:
            - name: pytorch
              image: x
              command: [python, a.py]
              resources: {limits: {cpu: 500m, memory: 1.5Gi, nvidia.com/gpu: 1}}
"""
CUSTOMJOB = """
displayName: j1
jobSpec:
  scheduling: {timeout: 3600s, restartJobOnWorkerRestart: true}
  workerPoolSpecs:
    - machineSpec: {machineType: n1-standard-8, acceleratorType: NVIDIA_TESLA_V100, acceleratorCount: 1}
      replicaCount: 2
      diskSpec: {bootDiskSizeGb: 100}
      containerSpec: {imageUri: x, command: [a]}
"""
QUOTA = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: q1, namespace: kube-system}
spec:
  root:
    name: root
    max: {cpu: 40, memory: 40Gi, nvidia.com/gpu: 4, kube-queue/max-jobs: 10}
    min: {cpu: 40, memory: 40Gi, nvidia.com/gpu: 4}
    children:
      - {name: child, namespaces: [a], max: {cpu: 20.5, memory: 1e3, nvidia.com/gpu: 4}, min: {cpu: 10}}
"""
CLUSTER = """
overcommit = true
[[nodes]]
name = "n1"
cpus = 64
memory = "64G"
cards = [{model = "A100", count = 2, memory = "80G"}]
[[partitions]]
name = "gpu"
nodes = ["n1"]
max_time = "2d"
priority_tier = 10
[priority]
type = "priority/multifactor"
weights = {age = 1000, tres = {cpu = 2.0}}
[backfill]
depth = 100
window = "2d"
[[accounts]]
name = "a1"
shares = 10
limits = {grp_tres = {cpu = 10}}
[staging]
keep = "7d"
folder = "/fast"
full = 90
"""
CATALOGUE = """
[[datasets]]
name = "d1"
project = "p"
owner = "ann"
path = "/data/1"
[[specs]]
name = "big"
cpus = 8
memory = "8G"
cards = 1
"""
CHANGES = "fairshare=10 priority=3 grptres=cpu=10,gres/gpu=2 maxjobs=5 maxwall=60 maxsubmitjobs=7 grptresmins=cpu=100"
QOS = "priority=3 usagefactor=2 gracetime=30 grptres=cpu=10 maxjobsperaccount=3 maxtresperuser=cpu=7"
SWF = "; MaxProcs: 128\n; UnixStartTime: 833353200\n1 0 2 3 4 -1 -1 4 5 -1 1 1 1 1 1 -1 -1 -1\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p1,1000,2048,1,500,A100,LS,Running,0,100,1\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\n"
PLAY = 'cluster demo campus --seed 3\nsize 120x40\nspeed 10\npress j\nwait "x" within 5s\nexpect "x"\n'
BINDING = "arena serve bind 3"


def _filters(text: str) -> None:
    compile_filter(text, TABLES["jobs"])


def _jobs(name: str) -> Callable[[str], object]:
    return lambda text: read_jobs(name, text, "/work", defaults=Defaults(now=Millis(0)))


FILTERS = (
    *("id:5", "cards>=2", "nodes>4", "!id:7 cards:1", "memory>2G"),
    *("started_at>2026-01-01", "time_limit>1h", "wait>2h", "priority<5"),
)
SNAPSHOT = '{"version": 1, "cluster": "x", "at": 5, "state": {"seq": 4, "at": 7}}'
VARIABLES = ("COCKPIT_HOLD_WINDOW", "COCKPIT_PIDS_LIMIT", "COCKPIT_SCRATCH_SIZE")

READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "job.yaml": (_jobs("job.yaml"), (JOB,)),
    "array": (_jobs("job.yaml"), ("name: a\ncommand: a\noutput: /o\narray: 0-9:2%3\n",)),
    "job.json": (_jobs("job.json"), (JSON_JOB,)),
    "job.jsonl": (_jobs("job.jsonl"), (f"{JSON_JOB}\n" + JSON_JOB.replace("j1", "j2"),)),
    "foreign": (
        lambda text: taken_over("file", text),
        (SBATCH, SBATCH_SHARES, ARENA, ARENA_TF, GCLOUD, PYTORCHJOB, PYTORCHJOB_MORE, CUSTOMJOB),
    ),
    "quota": (lambda text: quotatree.read_quota_tree("q.yaml", text), (QUOTA,)),
    "cluster.toml": (lambda text: read_cluster(a_node(), text), (CLUSTER,)),
    "catalogue.toml": (read_catalogue, (CATALOGUE,)),
    "toml": (lambda text: tomltext.parse_toml(text, "a.toml"), ("a = 1\nb = [2.5, 1979-05-27T07:32:00Z]\n",)),
    "slurmSpec": (
        lambda text: read_slurm_spec("s.json", text),
        ((ROOT / "fixtures/slurmspec/training-cluster.json").read_text(),),
    ),
    "association": (lambda text: association_change(text.split()), (CHANGES,)),
    "QOS": (lambda text: qos_change(text.split()), (QOS,)),
    "processors": (lambda text: swf.processors_said("a.swf", text.encode()), (SWF,)),
    "swf": (lambda text: swf.read_swf("a.swf", text.encode()), (SWF,)),
    "pods": (lambda text: gpu.read_pods("p.csv", text.encode()), (PODS,)),
    "nodes": (lambda text: gpu.read_nodes("n.csv", text.encode()), (NODES,)),
    "play": (lambda text: read_script("a.play", text), (PLAY,)),
    "binding": (read_binding, (BINDING,)),
    "limit": (typed_values.read_limit, ("6h", "+2h", "1-02:03:04", "90")),
    "priority": (typed_values.read_priority, ("5", "+5", "-5")),
    "TRES": (trestext.parse_tres, ("cpu=4,mem=10G,gres/gpu=2", "cpu=1.5")),
    "weights": (typed_values.read_weights, ("age=1000,tres/cpu=5",)),
    "memory": (quantity.parse_memory, ("2G", "1.5Gi", "7")),
    "duration": (quantity.parse_duration, ("1h30m", "1-02:03:04", "7")),
    "reference": (parse_reference, ("4711", "4711_3", "4711/2", "4711#2", "lab:4711_3/2#1")),
    "filter": (_filters, FILTERS),
    "count": (arguments.count, ("5",)),
    "seconds": (arguments.seconds, ("5", "5m")),
    "mebibytes": (arguments.mebibytes, ("5", "5G")),
    "conditions": (arguments.conditions, ("afterok:12_3", "afterany:5")),
    "job reference": (arguments.reference, ("4711_3",)),
    "settings": (
        lambda text: load_settings(
            env={"COCKPIT_HOLD_WINDOW": text, "COCKPIT_PIDS_LIMIT": text, "COCKPIT_SCRATCH_SIZE": text}
        ),
        ("300",),
    ),
    "snapshot": (lambda text: snapshotfile.read_snapshot(text, "s.json"), (SNAPSHOT,)),
}


@pytest.mark.parametrize("name", READERS)
def test_the_text_is_read_unchanged(name: str) -> None:
    """So that the hostile ones are read to their end too."""
    read, texts = READERS[name]
    for text in texts:
        read(text)


@pytest.mark.parametrize("name", READERS)
def test_a_hostile_number_is_a_value_or_an_error_message(name: str) -> None:
    read, texts = READERS[name]
    for text in texts:
        for hostile in (*variants(text), *HOSTILE):
            with suppress(*EXPECTED):
                _is_usable(read(hostile))


def _is_usable(value: Any) -> None:
    """What was read can be written down, sent and shown."""
    if isinstance(value, list) and value and isinstance(value[0], JobSpec):
        msgspec.msgpack.encode(value)
    msgspec.json.encode(value) if isinstance(value, Job | JobSpec) else str(value)[:1]
