"""What people already have, taken over: the sources' own examples as they stand, and the corners of each form."""

from __future__ import annotations

import shlex
from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.draft import Submission
from cockpit.formats.foreign.exchange import Form, form_of, taken_over, written
from cockpit.formats.foreign.sbatch_options import script_options
from cockpit.formats.foreign.sbatch_writing import write_sbatch
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.launch.command import expand
from cockpit.model.batchscript import EarlySignal
from cockpit.model.resilience import Elastic, Restart, WorkerRestart
from cockpit.model.spec import JobSpec, Mode, NodeSpec

ETJOB = r"""arena submit etjob \
 --loglevel=debug \
 --spot-instance \
 --max-wait-time=600 \
 --job-restart-policy=OnFailure \
 --job-backoff-limit=3 \
 --worker-restart-policy=Always \
 --launcher-selector=instance_type=spot-launcher \
 --toleration=all \
 --namespace=default \
 --name=fine-tuning-elastic \
 --gpus=1 \
 --memory=16Gi \
 --cpu=4 \
 --workers=8 \
 --max-workers=128 \
 --min-workers=1 \
 --image=registry.cn-beijing.aliyuncs.com/acs/bert-elastic-demo:v1.5 \
 "horovodrun --log-level DEBUG --verbose -np \$((\${workers}*\${gpus})) --min-np \$((\${minWorkers}*\${gpus})) --max-np \$((\${maxWorkers}*\${gpus})) --host-discovery-script /etc/edl/discover_hosts.sh python /examples/elastic/pytorch/train_bert.py --epochs=5 --model=bert --batch-size 32 --log-dir /opt"
"""  # noqa: E501 - as it stands in the source
REDUCTION = """gcloud ai custom-jobs create \\
--region=LOCATION \\
--display-name=JOB_NAME \\
--worker-pool-spec=machine-type=n1-highmem-96,replica-count=1,accelerator-type=NVIDIA_TESLA_V100,accelerator-count=8,container-image-uri=CUSTOM_CONTAINER_IMAGE_URI \\
--worker-pool-spec=machine-type=n1-highmem-96,replica-count=4,accelerator-type=NVIDIA_TESLA_V100,accelerator-count=8,container-image-uri=CUSTOM_CONTAINER_IMAGE_URI \\
--worker-pool-spec=machine-type=n1-highcpu-16,replica-count=16,container-image-uri=us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest
"""  # noqa: E501 - as it stands in the source
CUSTOM_JOB = """{
  "displayName": "pools",
  "jobSpec": {
    "workerPoolSpecs": [
      // `WorkerPoolSpec` for worker pool 0, primary replica, required
      {
        "machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2},
        "replicaCount": 1,
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        "containerSpec": {"imageUri": "gcr.io/p/train", "command": ["python3", "t.py"], "args": ["--lr", "0.1"]}
      },
      // `WorkerPoolSpec` for worker pool 1, optional
      {},
      {
        "machineSpec": {"machineType": "n1-highmem-4"},
        "replicaCount": "2",
        "pythonPackageSpec": {"executorImageUri": "gcr.io/x", "packageUris": ["gs://a"], "pythonModule": "serve"}
      }
    ],
    "scheduling": {"timeout": "3600s", "restartJobOnWorkerRestart": true},
    "serviceAccount": "me"
  }
}"""
SCRIPT = """#!/bin/bash
#SBATCH --job-name=multi   # its name
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:a100:4
#SBATCH --cpus-per-task=6
#SBATCH --mem=64G
#SBATCH -t 1-12:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --mail-type=ALL
#SBATCH -p gpu,long
#SBATCH --dependency=afterok:11:12

module load cuda
#SBATCH --account=late
srun python train.py --lr 0.1
"""


def taken(text: str) -> tuple[JobSpec, list[str]]:
    found = taken_over("file", text)
    assert found is not None
    (spec,) = read_jobs("file.json", found.text, "/home/ann", defaults=Defaults())
    return spec, [note.split(":")[0] for note in found.notes]


@pytest.mark.req("LA-70")
def test_the_elastic_job_of_the_source() -> None:
    spec, notes = taken(ETJOB)
    assert (spec.name, spec.mode, spec.nodes) == ("fine-tuning-elastic", Mode.HOROVOD, 8)
    assert spec.specs == (NodeSpec(cpus=4, memory_mib=16_384, card_milli=1000),)
    assert spec.elastic is not None
    assert (spec.elastic.min_workers, spec.elastic.max_workers) == (1, 128)
    assert (spec.elastic.max_wait_seconds, spec.elastic.backoff_limit) == (600, 3)
    assert spec.elastic.worker_restart_policy is WorkerRestart.ALWAYS
    assert spec.elastic.spot
    assert spec.elastic.launcher_selector == {"instance_type": "spot-launcher"}
    assert spec.image == "registry.cn-beijing.aliyuncs.com/acs/bert-elastic-demo:v1.5"
    assert [each.text for each in spec.tolerations] == ["*"]
    assert spec.env == {}
    launcher = {"workers": "8", "gpus": "1", "minWorkers": "1", "maxWorkers": "128"}
    assert expand(spec.command, launcher)[:10] == (
        *("horovodrun", "--log-level", "DEBUG", "--verbose", "-np", "8", "--min-np", "1", "--max-np", "128"),
    )
    assert "--namespace=default" in notes


@pytest.mark.req("LA-70", "LA-64")
def test_the_reduction_servers_of_the_source() -> None:
    spec, notes = taken(REDUCTION)
    assert (spec.name, spec.mode) == ("JOB_NAME", Mode.WORKER_POOLS)
    assert [(pool.replicas, pool.machine_type, pool.spec.card_milli) for pool in spec.worker_pools] == [
        (1, "n1-highmem-96", 8000),
        (4, "n1-highmem-96", 8000),
        (16, "n1-highcpu-16", 0),
    ]
    assert spec.worker_pools[2].image.endswith("/reductionserver:latest")
    assert notes == ["--region=LOCATION", "command", "output"]


@pytest.mark.req("LA-70", "LA-60")
def test_a_custom_job_with_the_comments_of_its_manual() -> None:
    spec, notes = taken(CUSTOM_JOB)
    first, second, third = spec.worker_pools
    assert (spec.command, spec.time_limit_seconds) == ("python3 t.py --lr 0.1", 3600)
    assert first.spec == NodeSpec(cpus=8, memory_mib=30_720, card_milli=2000, card_models=("NVIDIA_TESLA_T4",))
    assert (first.disk_type, first.disk_gib, first.image) == ("pd-ssd", 100, "gcr.io/p/train")
    assert second.replicas == 0
    assert (third.replicas, third.command, third.spec.memory_mib) == (2, "python3 -m serve", 26_624)
    assert notes == [
        "workerPoolSpecs[2].packageUris",
        "scheduling.restartJobOnWorkerRestart",
        "serviceAccount",
        "output",
    ]


@pytest.mark.req("LA-70")
def test_a_batch_script() -> None:
    spec, notes = taken(SCRIPT)
    assert (spec.name, spec.nodes, spec.time_limit_seconds, spec.partitions) == ("multi", 2, 129_600, ("gpu", "long"))
    assert spec.specs == (NodeSpec(cpus=24, memory_mib=65_536, card_milli=4000, card_models=("a100",)),)
    assert shlex.split(spec.command)[:2] == ["bash", "-c"]
    assert "srun python train.py --lr 0.1" in spec.command
    assert [each.target for each in spec.dependencies] == ["11", "12"]
    assert spec.output == "/home/ann"
    assert spec.account is None
    assert notes == ["#SBATCH", "--mail-type"]
    assert spec.script is not None
    assert (spec.script.text, spec.script.output, spec.script.work_dir) == (SCRIPT, "logs/%x-%j.out", "/home/ann")
    assert (spec.mode, spec.env["SLURM_NTASKS_PER_NODE"]) == (Mode.SLURM, "4")


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("-n 8", {"cpus": 8}),
        ("-n 8 -N 2 -c 3", {"cpus": 12}),
        ("-c 4 --mem-per-cpu=2G", {"cpus": 4, "memory_mib": 8192}),
        ("--mem=500", {"memory_mib": 500}),
        ("--gpus=4 -N2", {"card_milli": 2000}),
        ("--gpus-per-node=a100:2 --mem-per-gpu=8G", {"card_milli": 2000, "memory_mib": 16_384}),
        ("--gres=shard:1,gpu:3", {"card_milli": 3000}),
        ("--gres=gpu", {"card_milli": 1000}),
        ("--gres=gpu,gpu:2", {"card_milli": 3000}),
        ("--gres=gpu:2 --cpus-per-gpu=8", {"cpus": 16}),
        ("-N1 -n1 --gres=gpu:2 --cpus-per-gpu=8 --mem-per-cpu=1G", {"cpus": 16, "memory_mib": 16_384}),
        ("--ntasks-per-node=4 --gpus-per-node=1 --cpus-per-gpu=2", {"cpus": 4}),
    ],
)
def test_slurm_counts_tasks_and_cockpit_nodes(lines: str, expected: dict[str, int]) -> None:
    spec, _ = taken(f"#!/bin/bash\n#SBATCH -J x {lines}\npython t.py\n")
    assert {name: getattr(spec.specs[0], name) for name in expected} == expected


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("lines", "variables"),
    [
        ("-c 4 --mem-per-cpu=2G", {"SLURM_MEM_PER_CPU": "2048"}),
        ("--gpus-per-node=2 --mem-per-gpu=8G", {"SLURM_MEM_PER_GPU": "8192"}),
        ("--mem=500", {}),
    ],
)
def test_a_script_has_the_memory_variables_of_its_own_options(lines: str, variables: dict[str, str]) -> None:
    spec, _ = taken(f"#!/bin/bash\n#SBATCH -J x {lines}\npython t.py\n")
    assert {name: value for name, value in spec.env.items() if "MEM" in name} == variables


@pytest.mark.req("LA-70")
def test_a_script_that_waits_for_any_of_several_jobs_is_refused() -> None:
    with pytest.raises(SpecErrors, match=r"--dependency=afterok:1\?afterok:2 waits for any of several jobs"):
        taken("#!/bin/bash\n#SBATCH -J x -d afterok:1?afterok:2\npython t.py\n")


@pytest.mark.req("LA-70")
def test_an_arena_job_of_another_kind_is_refused() -> None:
    with pytest.raises(
        SpecErrors, match=r"arena submit sparkjob is a kind of job that does not run here; .*pytorchjob"
    ):
        taken("arena submit sparkjob --name=pi --image=spark:3 --executor-instances=4 --main-class=org.Pi")


@pytest.mark.req("LA-70")
def test_a_script_that_does_not_begin_again_lacks_nothing() -> None:
    spec, notes = taken("#!/bin/bash\n#SBATCH -J x --no-requeue\npython t.py\n")
    assert (spec.restart, notes) == (None, [])


@pytest.mark.req("LA-71")
def test_a_distribution_is_for_the_steps_of_the_script() -> None:
    spec, notes = taken("#!/bin/bash\n#SBATCH -J x -n 4 -m cyclic\npython t.py\n")
    assert (spec.env["SLURM_DISTRIBUTION"], notes) == ("cyclic", [])


@pytest.mark.req("LA-71")
def test_all_memory_of_an_exclusive_node_needs_no_option() -> None:
    assert taken("#!/bin/bash\n#SBATCH -J x --mem=0 --exclusive\npython t.py\n")[1] == []
    assert taken("#!/bin/bash\n#SBATCH -J x --mem=0\npython t.py\n")[1] == ["--mem=0"]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("time", "seconds"),
    [("90", 5400), ("30:15", 1815), ("2:00:00", 7200), ("1-2", 93_600), ("1-2:30", 95_400), ("0-00:00:07", 7)],
)
def test_the_times_of_slurm(time: str, seconds: int) -> None:
    spec, _ = taken(f"#!/bin/bash\n#SBATCH -J x -t {time}\npython t.py\n")
    assert spec.time_limit_seconds == seconds


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("# train\npython t.py --lr 0.1\n", "python t.py --lr 0.1"),
        ("python t.py *.csv\n", 'bash -c "python t.py *.csv"'),
        ("a\nb\n", 'bash -c "a\nb"'),
        ("X=1 python t.py", 'bash -c "X=1 python t.py"'),
    ],
)
def test_a_script_of_one_command_is_that_command(body: str, command: str) -> None:
    assert taken(f"#!/bin/sh\n#SBATCH -J x\n{body}")[0].command == command


@pytest.mark.req("LA-70")
def test_a_script_starts_on_the_first_node_and_has_srun_on_one_node_too() -> None:
    script = "#!/bin/bash\n#SBATCH -J x -N 2\nmodule load mpi\nsrun ./a.out\n"
    assert (taken(script)[0].mode, taken(script)[1]) == (Mode.SLURM, [])
    alone, notes = taken(script.replace("-N 2", ""))
    assert (alone.mode, notes) == (Mode.SLURM, [])


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("lines", "cpus", "note"),
    [
        ("--tasks-per-node=4 --cpus-per-t=1", 4, None),
        ("--ntasks-per-n 4", 4, None),
        ("--nodes=1 --constrain=a100", 1, "--constraint=a100"),
        ("--nvmps=3", 1, "--nvmps"),
        ("--gres=shard:2,gpu:1", 1, "--gres=shard"),
    ],
)
def test_options_are_called_as_sbatch_calls_them_and_none_is_dropped(lines: str, cpus: int, note: str | None) -> None:
    spec, notes = taken(f"#!/bin/bash\n#SBATCH -J x {lines}\npython t.py\n")
    assert spec.specs[0].cpus == cpus
    assert notes == [*([note] if note else [])]


@pytest.mark.req("LA-70", "SL-20")
def test_options_stand_behind_indented_comments_and_without_a_space_too() -> None:
    """So sbatch reads them: it stops at the first line that is a command."""
    script = "#!/bin/bash\n  # a comment\n\t#SBATCH -J none\n#SBATCH--job-name=x\n \n#SBATCH\t-c 3\npython t.py\n"
    spec, notes = taken(script)
    assert (spec.name, spec.specs[0].cpus, notes) == ("x", 3, [])
    late, notes = taken(script.replace("\n \n", "\n :\n"))
    assert late.specs[0].cpus == 1
    assert notes == ["#SBATCH"]


@pytest.mark.req("LA-70", "TR-04")
def test_a_command_below_an_indented_comment_becomes_no_option() -> None:
    text = write_sbatch({"name": "x", "command": "  # first\n#SBATCH --hold\necho done", "output": "/data"})
    assert "--hold" in text
    assert "hold" not in script_options(text)


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("separator", ["#SBATCH hetjob", "#SBATCH packjob", "#SBATCH\thetjob "])
def test_a_script_of_several_components_is_refused_with_the_line_and_the_remedy(separator: str) -> None:
    script = f"#!/bin/bash\n#SBATCH -J x -n 2\n{separator}\n#SBATCH -n 16\npython t.py\n"
    with pytest.raises(SpecErrors) as refused:
        taken(script)
    assert str(refused.value) == (
        f"file: looks like sbatch and cannot be read as that: line 3: {' '.join(separator.split())} starts a second "
        "component, and a job here has one; submit a job for each component, or submit the script to a Slurm cluster"
    )


@pytest.mark.req("LA-70")
def test_the_note_about_excluded_nodes_names_a_remedy() -> None:
    converted = taken_over("file", "#!/bin/bash\n#SBATCH -J x --exclude=n[1-2]\npython t.py\n")
    assert converted is not None
    assert list(converted.notes) == [
        "--exclude=n[1-2]: has no counterpart here; left out: name the nodes that the job may use with --nodelist"
    ]


@pytest.mark.req("LA-70")
def test_a_component_behind_the_first_command_is_a_comment() -> None:
    spec, notes = taken("#!/bin/bash\n#SBATCH -J x -n 2\npython t.py\n# hetjob\n#SBATCH hetjob\n")
    assert (spec.specs[0].cpus, notes) == (2, ["#SBATCH"])


@pytest.mark.req("LA-70")
def test_an_elastic_pytorch_job_has_its_backoff_limit_and_by_default_does_not_grow() -> None:
    spec, notes = taken("""kind: PyTorchJob
metadata: {name: x}
spec:
  runPolicy: {backoffLimit: 5}
  elasticPolicy: {minReplicas: 1, rdzvBackend: c10d}
  pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{command: [torchrun, t.py]}]}}}}
""")
    assert spec.elastic is not None
    assert (spec.elastic.workers, spec.elastic.max_workers, spec.elastic.backoff_limit) == (2, 2, 5)
    assert notes == ["torchrun", "output"]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("end", ["\\ \n", "\\ ", "\\\n", "\\\n    "])
def test_a_command_line_may_have_lost_its_line_ends_in_copying(end: str) -> None:
    line = [
        "arena submit etjob ",
        "--name=x ",
        "--workers=2 ",
        "--max-workers=4 ",
        '"horovodrun -np \\${workers} t.py"',
    ]
    spec, notes = taken(end.join(line))
    assert (spec.name, spec.nodes, spec.command) == ("x", 2, "horovodrun -np ${workers} t.py")
    assert notes == ["output"]


GCLOUD_WITH_FILE = "gcloud ai custom-jobs create --display-name=x --config=job.yaml --args=--seed,7"


@pytest.mark.req("LA-70")
def test_gcloud_reads_its_configuration_from_the_file_beside_it() -> None:
    pools = "worker_pool_specs:\n- {replica_count: 1, container_spec: {image_uri: i, command: [run]}}\n"
    found = taken_over("file", GCLOUD_WITH_FILE, {"job.yaml": pools + "scheduling: {timeout: 60s}\n"}.__getitem__)
    assert found is not None
    (spec,) = read_jobs("file.json", found.text, "/home/ann", defaults=Defaults())
    assert (spec.name, spec.command, spec.time_limit_seconds) == ("x", "run --seed 7", 60)
    with pytest.raises(SpecErrors, match=r"^file: job.yaml: names a file, which cannot be read from here"):
        taken_over("file", GCLOUD_WITH_FILE)


@pytest.mark.req("LA-70")
def test_the_image_of_a_script_in_gcloud_is_kept() -> None:
    line = "gcloud ai custom-jobs create --worker-pool-spec=replica-count=1,container-image-uri=i,script=t.py"
    spec, _ = taken(line)
    assert (spec.worker_pools[0].image, spec.command) == ("i", "python3 t.py")


@pytest.mark.req("LA-70")
def test_text_after_a_command_line_is_reported() -> None:
    spec, notes = taken("./arena submit pytorchjob --name=x pip install y; python t.py")
    assert spec.command == "pip install y"
    assert notes == ["python t.py", "output"]


@pytest.mark.req("LA-70")
def test_the_operators_own_example() -> None:
    spec, notes = taken(Path(__file__).with_name("simple-pytorchjob.yaml").read_text())
    assert (spec.name, spec.mode, spec.nodes, spec.specs[0].card_milli) == ("pytorch-simple", Mode.PYTORCH, 2, 1000)
    assert spec.command == "python3 /opt/pytorch-mnist/mnist.py --epochs=1"
    assert notes[0] == "metadata.namespace"


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("name: x\ncommand: gcloud ai custom-jobs create\noutput: .\n", None),
        ('{"name": "x", "command": "arena submit tfjob", "output": "."}', None),
        ("#!/bin/bash\necho\n", None),
        ("$ arena submit mpijob --name=x 'mpirun a'", Form.ARENA),
        ("# mine\ngcloud beta ai custom-jobs create --display-name=x", Form.GCLOUD),
        ("workerPoolSpecs:\n- machineSpec: {}\n", Form.CUSTOMJOB),
    ],
)
def test_each_format_is_recognized_by_its_content(text: str, form: Form | None) -> None:
    assert form_of(text) is form


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("text", ['{"workerPoolSpecs": [{}', "kind: PyTorchJob\nspec: 3\n", "kind: PyTorchJob\n- ["])
def test_unreadable_text_is_reported(text: str) -> None:
    with pytest.raises(SpecErrors, match=r"^file: looks like "):
        taken_over("file", text)


@pytest.mark.req("LA-70")
def test_a_script_without_a_name_is_called_like_its_file() -> None:
    script = "#!/bin/bash\n#SBATCH -n 1\ntrue\n"
    named, unnamed = (taken_over(source, script) for source in ("/home/ann/train.sh", "stdin"))
    assert named is not None
    assert unnamed is not None
    assert '"name":"train.sh"' in named.text
    assert '"name":"sbatch"' in unnamed.text


QOS, WATCHED = "alibabacloud.com/compute-qos", "job-supervisor.kube-ai.io/managed-by-job-supervisor"


@pytest.mark.req("EL-08", "LA-70")
@pytest.mark.parametrize("supervised", [True, False])
def test_best_effort_is_a_label_and_its_notice_an_annotation(supervised: bool) -> None:
    size = Elastic(workers=2, max_workers=4, best_effort=True, supervised=supervised)
    job = JobSpec(name="x", command="python3 t.py", output="/home/ann/x", nodes=2, elastic=size, mode=Mode.PYTORCH)
    manifest = written(job.as_accepted, Form.PYTORCHJOB, lambda *_: [job]).text
    line = written(replace(job, mode=Mode.HOROVOD).as_accepted, Form.ARENA, lambda *_: [job]).text
    for text in (manifest, line):
        assert (QOS in text, WATCHED in text) == (True, supervised)
        found, notes = taken(text)
        assert found.elastic is not None
        assert (found.elastic.best_effort, found.elastic.supervised) == (True, supervised)
        assert (found.specs[0].cpus, found.specs[0].memory_mib) == (0, 0)
        assert {*notes} == {"output"}


POLICY = """apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: example-policy}
spec:
  suspension: {scheduling: true}
  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 45}, purgeMode: Immediately}}
  placement: {replicaScheduling: {replicaSchedulingType: Divided, customSchedulingType: Gang}}
  resourceSelectors: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob}]
---
"""


@pytest.mark.req("LA-70", "FL-05", "FL-07")
def test_the_policy_of_a_fleet_sets_how_the_job_beside_it_waits() -> None:
    job = Path(__file__).with_name("simple-pytorchjob.yaml").read_text()
    spec, notes = taken(POLICY + job)
    assert (spec.suspension.scheduling, spec.failover.toleration_seconds) == (True, 45)
    assert not spec.divide_over_clusters
    assert "replicaSchedulingType" in notes
    assert "the other documents of the file" in taken(POLICY + POLICY + job)[1]
    back = written(
        spec, Form.PYTORCHJOB, lambda source, text: read_jobs("x.json", text, "/home/ann", defaults=Defaults())
    )
    assert not {"suspension", "failover"} & {*back.lost}


@pytest.mark.req("LA-70", "LA-71")
@pytest.mark.parametrize(
    ("lines", "field", "value"),
    [
        ("--requeue", "restart", Restart(max_restarts=1000, lost_only=True)),
        ("--constraint='ib&disk=ssd'", "node_selector", {"ib": "true", "disk": "ssd"}),
        ("--container-image='docker://nvcr.io#nvidia/pytorch:24.05'", "image", "nvcr.io/nvidia/pytorch:24.05"),
        ("--time=1-00:00:00", "time_limit_seconds", 86_400),
        ("--gres=gpu:a100:2(S:0-1)", "specs", (NodeSpec(card_milli=2000, card_models=("a100",)),)),
        ("--gres=gpu:1,gpu:2", "specs", (NodeSpec(card_milli=3000),)),
        ("--gpus=v100", "specs", (NodeSpec(card_milli=1000, card_models=("v100",)),)),
    ],
)
def test_fields_with_a_counterpart_are_converted(lines: str, field: str, value: object) -> None:
    spec, _ = taken(f"#!/bin/bash\n#SBATCH -J x {lines}\ntrue\n")
    assert getattr(spec, field) == value


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("lines", "early"),
    [
        ("--signal=B:USR1@60", EarlySignal(name="USR1", seconds=60, shell=True)),
        ("--signal=SIGTERM@120", EarlySignal(name="TERM", seconds=120)),
        ("--signal=10", EarlySignal(name="USR1", seconds=60)),
        ("--signal=R:USR2@5", EarlySignal(name="USR2", seconds=5)),
    ],
)
def test_a_signal_before_the_limit_is_read_as_sbatch_does(lines: str, early: EarlySignal) -> None:
    spec, notes = taken(f"#!/bin/bash\n#SBATCH -J x {lines}\ntrue\n")
    assert spec.script is not None
    assert (spec.script.early_signal, notes) == (early, [])


@pytest.mark.req("LA-71", "LA-70")
@pytest.mark.parametrize(
    "lines", ["--gres=gpu:a100:2,gpu:v100:1", "--gpus-per-node=a100:1,v100:1", "--gres=gpu:a100:1,gpu:1"]
)
def test_several_models_on_one_node_are_refused_and_never_dropped(lines: str) -> None:
    with pytest.raises(SpecErrors, match=f"{lines} asks for cards of several models .* write one of them"):
        taken(f"#!/bin/bash\n#SBATCH -J x {lines}\ntrue\n")


@pytest.mark.req("LA-71")
def test_variables_are_converted_as_export_says() -> None:
    shell = {"LR": "0.1", "HOME": "/root", "SLURM_JOB_ID": "7", "COCKPIT_CLUSTER": "x", "BASH_FUNC_ml%%": "() { :; }"}
    found = taken_over("x.sh", "#!/bin/sh\ntrue\n", submission=Submission(variables=shell))
    assert found is not None
    (spec,) = read_jobs("x.json", found.text, "/home/ann", defaults=Defaults())
    assert (spec.name, spec.env) == ("x.sh", {"LR": "0.1"})


@pytest.mark.req("LA-71", "LA-70")
def test_begin_needs_the_time_and_the_zone_of_the_submitter() -> None:
    script = "#!/bin/sh\n#SBATCH -J x --begin=16:00\ntrue\n"
    now = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    found = taken_over("x.sh", script, submission=Submission(now=now))
    assert found is not None
    assert '"begin_at":"2026-07-01T16:00:00+02:00"' in found.text
    with pytest.raises(SpecErrors, match="is a local time, and no clock is at hand"):
        taken_over("x.sh", script)


@pytest.mark.req("EL-07", "LA-70")
def test_an_etjob_without_a_backoff_limit_has_arenas_and_keeps_its_own_when_written() -> None:
    line = "arena submit etjob --name=t --image=i --workers=4 'python t.py'"
    spec, notes = taken(line)
    assert spec.elastic is not None
    assert (spec.elastic.backoff_limit, spec.elastic.max_workers) == (6, 4)
    assert "--max-workers" in notes
    arena = written(taken(ETJOB)[0], Form.ARENA, partial(read_jobs, folder="/", defaults=Defaults())).text
    for option in ("--max-workers=128", "--max-wait-time=600", "--job-backoff-limit=3"):
        assert option in arena
