"""Parts of foreign files that are rare: objects without replicas, fields without a counterpart, options of srun."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.foreign import exchange
from cockpit.formats.foreign.draft import Submission
from cockpit.formats.foreign.exchange import Form, form_of, taken_over, written
from cockpit.formats.foreign.sbatch_options import line_options
from cockpit.launch.command import ENTRYPOINT
from cockpit.model.resilience import Elastic
from cockpit.model.spec import JobSpec, Mode
from tests.builders import a_spec
from tests.formats.foreign.test_command_lines import read, taken
from tests.formats.foreign.test_manifests import manifest, pods

CPUS = {"cpu": 1}
KINDS = [
    ("PyTorchJob", "kubeflow.org/v1", "pytorchReplicaSpecs"),
    ("TFJob", "kubeflow.org/v1", "tfReplicaSpecs"),
    ("MPIJob", "kubeflow.org/v1", "mpiReplicaSpecs"),
    ("Job", "batch.volcano.sh/v1alpha1", "tasks"),
]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(("kind", "version", "roles"), KINDS)
def test_a_manifest_without_replicas_runs_the_images_own_program_and_says_so(
    kind: str, version: str, roles: str
) -> None:
    spec, notes = taken(manifest(kind, version, **{roles: [] if roles == "tasks" else {}}))
    assert spec.command == ENTRYPOINT
    assert any(note.startswith("command: nothing is given") for note in notes)


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(("kind", "version", "roles"), KINDS[:3])
def test_unknown_roles_and_fields_of_a_manifest_are_named(kind: str, version: str, roles: str) -> None:
    role = {"replicas": 1, **pods(["run"], **CPUS)}
    given = {roles: {"Worker": role, "Judge": role}, "colour": "red"}
    _, notes = taken(manifest(kind, version, **given))
    assert f"spec.{roles}.Judge" in [note.partition(":")[0] for note in notes]
    assert "spec.colour" in [note.partition(":")[0] for note in notes]


def volcano(*tasks: dict[str, Any], **spec: Any) -> tuple[JobSpec, list[str]]:
    return taken(manifest("Job", "batch.volcano.sh/v1alpha1", tasks=list(tasks), **spec))


@pytest.mark.req("LA-70")
def test_servers_among_volcanos_tasks_mean_tensorflow_without_a_plugin() -> None:
    spec, _ = volcano(
        {"name": "ps", "replicas": 2, **pods(["run"], **CPUS)},
        {"name": "worker", "replicas": 3, "minAvailable": 3, **pods(["run"], **CPUS)},
    )
    assert (spec.mode, spec.parameter_servers, spec.nodes) == (Mode.TENSORFLOW, 2, 3)
    _, notes = taken(written(spec, Form.VOLCANOJOB, read).text)
    assert not any("ps" in note and "replicas" in note for note in notes)
    assert "parameter_servers" not in written(spec, Form.VOLCANOJOB, read).lost


@pytest.mark.req("LA-70")
def test_a_task_of_volcano_that_may_run_in_part_is_reported_and_one_that_needs_all_is_not() -> None:
    task = {"name": "worker", "replicas": 3, **pods(["run"], **CPUS)}
    assert not any("minAvailable" in note for note in volcano({**task, "minAvailable": 3})[1])
    assert any("minAvailable" in note for note in volcano({**task, "minAvailable": 2})[1])


@pytest.mark.req("LA-70")
def test_the_launcher_of_volcano_brings_its_variables_and_what_differs_is_reported() -> None:
    launcher, worker = pods(["mpirun", "t"], **CPUS), pods(["sshd"], cpu=4)
    launcher["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    worker["template"]["spec"]["containers"][0]["env"] = [{"name": "B", "value": "2"}]
    spec, notes = volcano(
        {"name": "master", "replicas": 1, **launcher}, {"name": "worker", "replicas": 2, **worker}, plugins={"mpi": []}
    )
    assert (spec.command, spec.nodes, spec.env) == ("mpirun t", 2, {"A": "1", "B": "2"})
    assert any("specs" in note for note in notes)


@pytest.mark.req("LA-70")
def test_the_volumes_of_a_volcano_job_are_those_of_the_catalogue() -> None:
    spec, notes = volcano(
        {"name": "w", "replicas": 1, **pods(["run"], **CPUS)},
        volumes=[
            {"volumeClaimName": "scratch", "mountPath": "/workspace/volume/scratch"},
            {"mountPath": "/x", "volumeClaim": {}},
        ],
    )
    assert [each.name for each in spec.volumes] == ["scratch"]
    assert [note.partition(":")[0] for note in notes if note.startswith("spec.volumes")] == [
        "spec.volumes[0].volumeClaimName",
        "spec.volumes[1]",
    ]


def batch_job(**spec: Any) -> tuple[JobSpec, list[str]]:
    pod = {"restartPolicy": "Never", **spec.pop("pod", {})}
    template = pods(["run"], **CPUS)["template"]
    template["spec"] |= pod
    template |= spec.pop("beside", {})
    return taken(manifest("Job", "batch/v1", template=template, **spec))


@pytest.mark.req("LA-70")
def test_a_job_of_kubernetes_with_no_parallelism_is_held() -> None:
    assert batch_job(parallelism=0)[0].hold
    assert not batch_job(parallelism=1)[0].hold


@pytest.mark.req("LA-70")
def test_pods_that_restart_by_themselves_without_retries_are_reported() -> None:
    _, notes = batch_job(backoffLimit=0, pod={"restartPolicy": "OnFailure"})
    assert any(note.startswith("spec.template.spec.restartPolicy=OnFailure") for note in notes)
    assert not any("restartPolicy" in note for note in batch_job(backoffLimit=0)[1])


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("pod", "noted"),
    [
        ({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]}, "effect=NoExecute"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]}, "tolerationSeconds"),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]}}}, "preferredDuring"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                        }
                    }
                }
            },
            "requiredDuringScheduling",
        ),
    ],
)
def test_conditions_on_nodes_without_a_counterpart_are_named(pod: dict[str, Any], noted: str) -> None:
    assert [note for note in batch_job(pod=pod)[1] if noted in note] != []


@pytest.mark.req("LA-70")
def test_taints_that_only_keep_jobs_off_need_no_note() -> None:
    tolerations = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]
    spec, notes = batch_job(pod={"tolerations": tolerations})
    assert [each.text for each in spec.tolerations] == ["a"]
    assert not any("tolerations" in note for note in notes)


@pytest.mark.req("LA-70")
def test_a_second_container_and_fields_beside_the_pod_are_named() -> None:
    template = pods(["run"], **CPUS)["template"]
    template["spec"]["containers"].append({"name": "proxy"})
    text = manifest("Job", "batch/v1", template={**template, "status": {}, "metadata": {"finalizers": []}})
    notes = [note.partition(":")[0] for note in taken(text)[1]]
    assert any(note.endswith("template.status") for note in notes)
    assert any(note.endswith("containers[proxy]") for note in notes)
    assert any(note.endswith("metadata.finalizers") for note in notes)


@pytest.mark.req("LA-70")
def test_labels_that_cannot_be_labels_are_left_out_with_the_reason() -> None:
    text = json.dumps(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "x", "labels": {"team": "nlp", "bad key": "v", "note": "two words"}},
            "spec": pods(["run"], **CPUS),
        }
    )
    spec, notes = taken(text)
    assert spec.labels == {"team": "nlp"}
    assert sum(note.endswith("left out") for note in notes) >= 2


def mounted(volume: dict[str, Any], **mount: Any) -> tuple[JobSpec, list[str]]:
    template = pods(["run"], **CPUS)["template"]
    at = {"name": "d", "mountPath": "/workspace/volume/d", **mount}
    template["spec"]["containers"][0]["volumeMounts"] = [at]
    template["spec"]["volumes"] = [{"name": "d", **volume}]
    return taken(manifest("Job", "batch/v1", template=template))


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("claim", "mount", "read_only"), [({}, {}, False), ({"readOnly": True}, {}, True), ({}, {"readOnly": True}, True)]
)
def test_a_claim_is_the_volume_of_that_name(claim: dict[str, Any], mount: dict[str, Any], read_only: bool) -> None:
    spec, notes = mounted({"persistentVolumeClaim": {"claimName": "d", **claim}}, **mount)
    assert ([each.name for each in (*spec.volumes, *spec.datasets)], notes != []) == (["d"], True)
    assert any("is the volume of that name in the catalogue" in note for note in notes)
    assert bool(spec.volumes) is not read_only


@pytest.mark.req("LA-70")
def test_shared_memory_needs_no_volume_and_other_fields_of_a_mount_are_named() -> None:
    spec, notes = mounted({"emptyDir": {"medium": "Memory"}}, mountPath="/dev/shm", mountPropagation="None")
    assert spec.volumes == ()
    assert any("has a /dev/shm as large as its memory" in note for note in notes)
    assert any("mountPropagation" in note for note in notes)


@pytest.mark.req("LA-70")
def test_a_custom_job_names_its_unknown_strategy_and_scheduling() -> None:
    pool = {"replicaCount": 1, "machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "i"}}
    job = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool], "scheduling": {"strategy": "LATER", "day": 1}}}
    _, notes = taken(json.dumps(job))
    named = [note.partition(":")[0] for note in notes if note.startswith("scheduling.")]
    assert named == ["scheduling.strategy=LATER", "scheduling.day"]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("text", ["arena submit pytorchjob 'unclosed", "gcloud ai custom-jobs create 'unclosed", "[1]"])
def test_text_that_no_format_reads_is_no_foreign_job(text: str) -> None:
    assert form_of(text) is None


@pytest.mark.req("LA-70")
def test_an_arena_line_without_a_command_runs_the_images_own_program() -> None:
    spec, notes = taken("arena submit pytorchjob --name=x --gpus=1 --image=i\n")
    assert spec.command == ENTRYPOINT
    assert any(note.startswith("command:") for note in notes)


@pytest.mark.req("LA-70")
def test_only_options_that_are_flags_are_written_as_words_by_arena() -> None:
    elastic = Elastic(workers=2, max_workers=4, spot=True, allow_scaling=True)
    text = written(a_spec("x", nodes=2, mode=Mode.HOROVOD, elastic=elastic), Form.ARENA, read).text
    assert "--max-workers=4" in text
    assert "--spot-instance=true" in text
    assert "True" not in text


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(("role", "position"), [("chief", 0), ("worker", 1)])
def test_a_selector_of_one_role_is_reported(role: str, position: int) -> None:
    line = f"arena submit tfjob --name=x --image=i --chief --workers=2 --{role}-selector=disk=ssd 'python t.py'\n"
    spec, notes = taken(line)
    assert spec.mode is Mode.WORKER_POOLS
    assert spec.worker_pools[position].replicas >= 1
    assert any(note.startswith(f"--{role}-selector=disk=ssd") for note in notes)


NOW = datetime(2026, 3, 9, 14, 5, tzinfo=ZoneInfo("Europe/Berlin"))


def script(*lines: str, shell: dict[str, str] | None = None, body: str = "python t.py") -> tuple[JobSpec, list[str]]:
    text = "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in lines), body, ""])
    found = taken_over("x.sh", text, submission=Submission(variables=shell, now=NOW))
    assert found is not None
    (spec,) = read("x", found.text)
    return spec, list(found.notes)


@pytest.mark.req("LA-71")
def test_variables_named_by_export_are_those_of_the_submitting_shell() -> None:
    spec, notes = script("--export=A,B,C=3", shell={"A": "1", "Z": "9"})
    assert (spec.env["A"], spec.env["C"], "B" in spec.env, "Z" in spec.env) == ("1", "3", False, False)
    assert [note for note in notes if "--export" in note] != []
    spec, _ = script("--export=C=3", shell={"A": "1"})
    assert (spec.env.get("C"), "A" in spec.env) == ("3", False)
    spec, _ = script("--export=ALL,C=3", shell={"A": "1"})
    assert (spec.env["C"], spec.env["A"]) == ("3", "1")


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("--nodelist=n[08-10]", ["n08", "n09", "n10"]),
        ("--nodelist=a[1,3-4]x,b", ["a1x", "a3x", "a4x", "b"]),
        ("--nodelist=n7", ["n7"]),
    ],
)
def test_lists_of_nodes_are_expanded_with_leading_zeros(line: str, nodes: list[str]) -> None:
    assert list(script(f"--nodes={len(nodes)}", line)[0].node_names) == nodes


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("--constraint=a|b", "--constraint=a|b"),
        ("--container-image=/img/x.sqsh", "--container-image=/img/x.sqsh"),
        ("--dependency=afterok:12+5", "--dependency"),
        ("--hold=maybe", "--hold=maybe"),
    ],
)
def test_options_that_can_only_be_taken_in_part_are_reported(line: str, noted: str) -> None:
    assert [note for note in script(line)[1] if note.startswith(noted)] != []


@pytest.mark.req("LA-71")
def test_features_of_nodes_are_labels() -> None:
    spec, notes = script("--constraint=ssd&a100")
    assert list(spec.node_selector) == ["ssd", "a100"]
    assert "--constraint=ssd&a100: features are labels of nodes here; taken for ssd=true, a100=true" in notes


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2026-12-24T08:00:00+01:00", "2026-12-24T07:00"),
        ("16:00", "2026-03-09T15:00"),
        ("now+1hour", "2026-03-09T14:05"),
    ],
)
def test_begin_is_read_in_the_zone_of_the_submitter_unless_it_names_one(value: str, day: str) -> None:
    begin = script(f"--begin={value}")[0].begin_at
    assert begin is not None
    assert datetime.fromtimestamp(begin / 1000, ZoneInfo("UTC")).isoformat()[:16] == day


@pytest.mark.req("LA-71")
def test_an_invalid_begin_and_signal_are_refused_with_the_option() -> None:
    with pytest.raises((ValueError, SpecErrors), match="begin"):
        script("--begin=someday")


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("interpreter", "command"),
    [
        ("#!/usr/bin/env -S python3 -u", "python3 -u -c"),
        ("#!/usr/bin/env python3", "python3 -c"),
        ("#!/usr/bin/python3 -u", "/usr/bin/python3 -u -c"),
    ],
)
def test_a_script_for_another_interpreter_is_handed_to_it(interpreter: str, command: str) -> None:
    found = taken_over("x", f"{interpreter}\n#SBATCH --job-name=x\nprint('a b')\n")
    assert found is not None
    assert (
        json.loads(found.text)["command"].startswith(command) if found.text.startswith("{") else command in found.text
    )


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("sbatch -o out.%j --mem=4G job.sh -o its.own", {"output": "out.%j", "mem": "4G"}),
        ("sbatch --wrap=run -o behind", {}),
        ("srun --pty -o x bash", {"output": "x"}),
        ("sbatch", {}),
    ],
)
def test_the_options_of_a_submit_line_end_at_the_script(line: str, options: dict[str, str]) -> None:
    assert line_options(line, {"pty"}) == options


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("given", "back", "differs"),
    [
        ("x 'a' $LR $((N+1))", 'x "a" ${LR} $((N+1))', False),
        ("x a", "x b", True),
        ("x $A", "x $B", True),
        ("x $A", "x '$A'", True),
        ("x $((N+1))", "x $((N+2))", True),
        ("a | b", "a | c", True),
    ],
)
def test_a_command_is_lost_only_where_its_words_differ_and_not_their_quotes(
    given: str, back: str, differs: bool
) -> None:
    found = exchange._differences({"tasks": [{"command": given}]}, {"tasks": [{"command": back}]})
    assert found == (["tasks"] if differs else [])
