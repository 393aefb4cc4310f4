"""TrainingJobs of Alibaba's elastic training operator, as arena writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from cockpit.formats.foreign.exchange import Form, form_of, written
from cockpit.model.resilience import Elastic, JobRestart, WorkerRestart
from cockpit.model.spec import JobSpec, Mode, NodeSpec
from tests.formats.foreign.test_command_lines import lost, read, taken

SHELL = "horovodrun -np $((${workers}*${gpus})) --min-np ${minWorkers} python train.py --tag $$(HOSTNAME) --lr $(LR)"


def template(*command: str, cards: int = 0, **pod: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "et", "image": "horovod:1"}
    if command:
        variables = {"workers": "2", "gpus": "1", "minWorkers": "1", "maxWorkers": "9", "LR": "0.1"}
        container["command"] = list(command)
        container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    if cards:
        container["resources"] = {"limits": {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": cards}}
    return {"spec": {"containers": [container], **pod}}


def training_job(notes: dict[str, str] | None = None, worker: dict[str, Any] | None = None, **spec: Any) -> str:
    bounds = {"minReplicas": 1, "maxReplicas": 9} if worker is None else worker
    replicas = {
        "launcher": {"replicas": 1, "template": template("sh", "-c", SHELL, nodeSelector={"kind": "spot-launcher"})},
        "worker": {"replicas": 2, "template": template(cards=1), **bounds},
    }
    return json.dumps(
        {
            "apiVersion": "kai.alibabacloud.com/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "elastic", "annotations": notes or {}},
            "spec": {"etReplicaSpecs": replicas, **spec},
        }
    )


@pytest.mark.req("LA-70", "EL-01", "KU-10")
def test_an_elastic_spot_job_is_read_with_its_launcher_and_workers() -> None:
    notes = {
        "job-supervisor.kube-ai.io/spot-instance": "true",
        "job-supervisor.kube-ai.io/max-wait-time": "900",
        "theirs": "x",
    }
    text = training_job(notes, restartPolicy="OnFailure", backoffLimit=3, cleanPodPolicy="Running")
    assert form_of(text) is Form.TRAININGJOB
    spec, reported = taken(text)
    assert spec.elastic == Elastic(
        workers=2,
        min_workers=1,
        max_workers=9,
        spot=True,
        max_wait_seconds=900,
        job_restart_policy=JobRestart.ON_FAILURE,
        backoff_limit=3,
        launcher_selector={"kind": "spot-launcher"},
    )
    assert (spec.mode, spec.image, spec.specs) == (
        Mode.HOROVOD,
        "horovod:1",
        (NodeSpec(cpus=4, memory_mib=16384, card_milli=1000),),
    )
    # Kubernetes replaces the reference to a variable of the container, and leaves the shell's own to the shell.
    assert "--min-np ${minWorkers} python train.py --tag $(HOSTNAME) --lr 0.1" in spec.command
    # The launcher has arena's variables by itself.
    assert spec.env == {"LR": "0.1"}
    assert [each.partition(":")[0] for each in reported] == ["metadata.annotations.theirs", "spec.cleanPodPolicy"]


@pytest.mark.req("LA-70", "EL-01")
def test_missing_bounds_and_policies_are_those_of_the_definition() -> None:
    spec, reported = taken(training_job(worker={}))
    assert spec.elastic is not None
    assert (spec.elastic.min_workers, spec.elastic.workers, spec.elastic.max_workers) == (2, 2, 2)
    assert (spec.elastic.backoff_limit, spec.elastic.worker_restart_policy) == (6, WorkerRestart.NEVER)
    assert "spec.etReplicaSpecs.worker.maxReplicas: is missing; the job grows to its replicas only" in reported


@pytest.mark.req("LA-70")
def test_what_a_launcher_cannot_have_here_is_reported() -> None:
    manifest = json.loads(training_job(slotsPerWorker=2, launcherAttachMode="kubexec"))
    launcher = manifest["spec"]["etReplicaSpecs"]["launcher"]
    launcher |= {"restartPolicy": "Always", "template": template("run", cards=1, tolerations=[{"operator": "Exists"}])}
    _, reported = taken(json.dumps(manifest))
    assert [each.partition(":")[0] for each in reported] == [
        "spec.etReplicaSpecs.launcher…resources",
        "spec.etReplicaSpecs.launcher",
        "spec.etReplicaSpecs.launcher.restartPolicy=Always",
        "spec.slotsPerWorker=2",
        "spec.launcherAttachMode",
    ]


@pytest.mark.req("LA-70")
@pytest.mark.parametrize("roles", [{}, {"launcher": None}, {"worker": {"replicas": 3}}])
def test_a_job_without_one_of_its_roles_is_read(roles: dict[str, Any]) -> None:
    manifest = json.loads(training_job())
    manifest["spec"]["etReplicaSpecs"] = roles
    spec, reported = taken(json.dumps(manifest))
    assert spec.command == "entrypoint"
    assert spec.elastic is not None
    assert any("launcher" in each or each.startswith("command") for each in reported)


@pytest.mark.req("LA-70", "KU-10")
@pytest.mark.parametrize("mode", [Mode.HOROVOD, Mode.DEEPSPEED])
def test_a_job_is_written_as_arena_writes_it_and_read_back(mode: Mode) -> None:
    elastic = Elastic(
        workers=8,
        min_workers=2,
        max_workers=128,
        spot=True,
        max_wait_seconds=600,
        worker_restart_policy=WorkerRestart.ALWAYS,
        launcher_selector={"kind": "spot-launcher"} if mode is Mode.HOROVOD else {},
    )
    program = "deepspeed train.py" if mode is Mode.DEEPSPEED else "horovodrun -np $((${workers}*${gpus})) python t.py"
    spec = JobSpec(
        name="elastic",
        command=program,
        mode=mode,
        nodes=8,
        elastic=elastic,
        image="horovod:1",
        output="/home/ann/elastic",
        env={"LR": "$(x) $$"},
        specs=(NodeSpec(cpus=4, memory_mib=16384, card_milli=2000),),
        node_selector={"disk": "ssd"},
        time_limit_seconds=1234,
    )
    assert lost(spec, Form.TRAININGJOB) == ()
    made = yaml.safe_load(written(spec, Form.TRAININGJOB, read).text)
    assert made["metadata"]["annotations"] == {
        "job-supervisor.kube-ai.io/spot-instance": "true",
        "job-supervisor.kube-ai.io/max-wait-time": "600",
    }
    launcher, worker = (made["spec"]["etReplicaSpecs"][name] for name in ("launcher", "worker"))
    (container,) = launcher["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "16384Mi"}
    assert {"name": "gpus", "value": "2"} in container["env"]
    assert launcher["template"]["spec"].get("nodeSelector", {}) == elastic.launcher_selector
    assert (worker["replicas"], worker["minReplicas"], worker["maxReplicas"]) == (8, 2, 128)
    assert "command" not in worker["template"]["spec"]["containers"][0]
