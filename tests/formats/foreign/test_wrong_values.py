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


ARENA = "arena submit pytorch --name=%s --workers=%s --image=i 'python t.py'"
GCLOUD = (
    "gcloud ai custom-jobs create --display-name=%s --region=$REGION "
    "--worker-pool-spec=replica-count=1,container-image-uri=i"
)
REPLACED = "a shell would replace %s, and none reads this line; write the value, or fill in variables by"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (ARENA % ("train-$USER", 2), "--name=train-${USER}: " + REPLACED % "$USER"),
        (ARENA % ('"t-$(date +%s)"', 2), "--name=t-$(date +%s): " + REPLACED % "$(date +%s)"),
        (ARENA % ("t-`date +%s`", 2), "--name=t-`date: " + REPLACED % "`date +%s`"),
        (ARENA % ("$1", 2), "--name=$1: " + REPLACED % "$1"),
        (GCLOUD % "${NAME}", "--display-name=${NAME}: " + REPLACED % "${NAME}"),
        (GCLOUD % "x" + " --args='--a',--dir=$DIR", "--args=--a,--dir=${DIR}: " + REPLACED % "$DIR"),
        ("# it's for $USER\n" + GCLOUD % "$NAME", "--display-name=${NAME}: " + REPLACED % "$NAME"),
        (ARENA % ("x", "two"), "--workers: two " + NUMBER),
        (ARENA % ("x", "1 --ps=many"), "--ps: many " + NUMBER),
    ],
)
def test_what_only_a_shell_can_fill_in_is_refused(text: str, error: str) -> None:
    (found,) = errors_of(text)
    assert found.startswith(error)


@pytest.mark.parametrize(
    "text",
    [
        ARENA % ("'t-$USER'", 2),
        ARENA % (r"t-\$USER", 2),
        ARENA % ("x", 2) + " --env=PRICE=5$",
        'arena submit mpi --name=x --workers=2 --image=i "mpirun -np $((${workers}*2)) python t.py --out $OUT"',
        GCLOUD % "x",
    ],
)
def test_quoted_dollars_and_those_of_the_command_are_no_errors(text: str) -> None:
    assert taken_over("x.sh", text) is not None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "# mine\n#!/bin/bash\n#SBATCH -n 4\nsrun hostname\n",
            "has #SBATCH lines and no interpreter, as sbatch requires",
        ),
        (
            "#SBATCH -n 4\nsrun hostname\n",
            "has #SBATCH lines and no interpreter, as sbatch requires it; write #!/bin/bash",
        ),
        (
            "X=1\n" + ARENA % ("$X", 2),
            "has a line of arena behind other commands, which are not run here; copy that line",
        ),
        ("set -e\ncd /x\n" + GCLOUD % "x", "has a line of gcloud behind other commands, which are not run here"),
    ],
)
def test_a_form_that_is_not_recognised_by_its_first_line_is_named(text: str, error: str) -> None:
    (found,) = errors_of(text)
    assert found.startswith(error)


@pytest.mark.parametrize("line", ["#SBATCH -n 4", "arena submit tf --name=x"])
def test_a_job_file_may_have_such_lines(line: str) -> None:
    assert taken_over("x.yaml", f"# made of:\n{line}\n".replace("arena", "#arena") + "name: x\ncommand: a\n") is None
    assert taken_over("x.yaml", f"name: x\ncommand: |\n  {line}\n") is None
