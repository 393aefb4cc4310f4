"""Manifests with values that their own system refuses: each is an error with its field, not a job of another size."""

from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.exchange import taken_over

pytestmark = pytest.mark.req("LA-70")

POD = "{spec: {containers: [{name: c, image: i, command: [python3, t.py], resources: {limits: {%s}}}]}}"
TORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: x}
spec:
  %s
  pytorchReplicaSpecs:
    Worker: {replicas: %s, template: """
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {%s, template: " + POD % "" + "}\n"
TRAIN = (
    "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: x}\nspec:\n"
    "  runtimeRef: {name: torch-distributed}\n  trainer: {image: i, command: [python3, t.py], numNodes: %s}\n"
)
VOLCANO = (
    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n  minAvailable: %s\n"
    "  tasks: [{name: w, replicas: 2, template: " + POD % "" + "}]\n"
)
POOL = (
    "displayName: x\njobSpec:\n  workerPoolSpecs:\n    - {machineSpec: {machineType: n1-standard-4, "
    "acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: %s}, replicaCount: 1, containerSpec: {imageUri: i}}\n"
)
FILL_IN = "it is a template's placeholder: write its value, or fill all in by `envsubst < FILE | cockpit submit -`"


def torch(replicas: object = 2, policy: str = "", limits: str = "") -> str:
    return TORCH % (policy, replicas) + POD % limits + "}\n"


def errors_of(text: str) -> tuple[str, ...]:
    with pytest.raises(SpecErrors) as refused:
        taken_over("x.yaml", text)
    return tuple(error.removeprefix("x.yaml: ") for error in refused.value.errors)


WORKER = "spec.pytorchReplicaSpecs.Worker"
NUMBER = "is no whole number; write one, such as 2"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (torch("$NUM_NODES"), f"{WORKER}.replicas: $NUM_NODES is no whole number; {FILL_IN}"),
        (torch("'{{ .nodes }}'"), WORKER + ".replicas: {{ .nodes }} is no whole number; " + FILL_IN),
        (torch("<nodes>"), f"{WORKER}.replicas: <nodes> is no whole number; {FILL_IN}"),
        (torch(2.5), f"{WORKER}.replicas: 2.5 {NUMBER}"),
        (torch(-1), f"{WORKER}.replicas: -1 {NUMBER}"),
        (torch("true"), f"{WORKER}.replicas: True {NUMBER}"),
        (
            torch(limits="nvidia.com/gpu: $GPUS"),
            f"{WORKER}…resources.nvidia.com/gpu: $GPUS is no whole number; {FILL_IN}",
        ),
        (torch(limits="nvidia.com/gpu: 0.5"), f"{WORKER}…resources.nvidia.com/gpu: 0.5 {NUMBER}"),
        (
            torch(limits="memory: 64GB"),
            f"{WORKER}…resources.memory: 64GB is no quantity of Kubernetes; write one, such as 64Gi",
        ),
        (
            torch(limits="cpu: many"),
            f"{WORKER}…resources.cpu: many is no quantity of Kubernetes; write one, such as 4 or 500m",
        ),
        (torch(policy="runPolicy: {backoffLimit: a}"), f"spec.runPolicy.backoffLimit: a {NUMBER}"),
        (torch(policy="runPolicy: {activeDeadlineSeconds: 1h}"), f"spec.runPolicy.activeDeadlineSeconds: 1h {NUMBER}"),
        (torch(policy="elasticPolicy: {maxRestarts: x}"), f"spec.elasticPolicy.maxRestarts: x {NUMBER}"),
        (
            torch(policy="runPolicy: {schedulingPolicy: {minAvailable: all}}"),
            f"spec.runPolicy.schedulingPolicy.minAvailable: all {NUMBER}",
        ),
        (JOB % "completions: many", f"spec.completions: many {NUMBER}"),
        (JOB % "parallelism: -2", f"spec.parallelism: -2 {NUMBER}"),
        (JOB % "backoffLimit: $N", f"spec.backoffLimit: $N is no whole number; {FILL_IN}"),
        (TRAIN % "two", f"spec.trainer.numNodes: two {NUMBER}"),
        (VOLCANO % "some", f"spec.minAvailable: some {NUMBER}"),
        (POOL % "'{COUNT}'", f"workerPoolSpecs[0].machineSpec.acceleratorCount: {{COUNT}} {NUMBER}"),
    ],
)
def test_a_wrong_number_is_refused_with_its_field(text: str, error: str) -> None:
    assert errors_of(text) == (error,)


def test_all_wrong_values_are_named_at_once() -> None:
    both = errors_of(torch("$N", policy="runPolicy: {backoffLimit: a}", limits="memory: much, cpu: 2"))
    assert [each.split(":")[0] for each in both] == [
        f"{WORKER}.replicas",
        f"{WORKER}…resources.memory",
        "spec.runPolicy.backoffLimit",
    ]
