"""The kind of object that a job becomes, by its mode and what the cluster serves."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from cockpit.backends.kubernetes.resources import JOBS, MPI_JOBS, PYTORCH_JOBS, TRAINING_JOBS, Resource
from cockpit.backends.kubernetes.submitting import manifest_of
from cockpit.errors import RequestRefused
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Mode
from tests.builders import a_spec

ELASTIC = Elastic(workers=2, max_workers=4)
ALL = (JOBS, MPI_JOBS, PYTORCH_JOBS, TRAINING_JOBS)


def made(served: Collection[Resource] = ALL, **fields: Any) -> tuple[Resource, dict[str, Any]]:
    return manifest_of(a_spec(**{"name": "train", "image": "img:1", **fields}), served, "team-a", "alice")


@pytest.mark.req("KU-07", "KU-10")
@pytest.mark.parametrize(
    ("mode", "kind", "bounds"),
    [
        (Mode.PYTORCH, PYTORCH_JOBS, lambda spec: spec["elasticPolicy"]["maxReplicas"]),
        (Mode.HOROVOD, TRAINING_JOBS, lambda spec: spec["etReplicaSpecs"]["worker"]["maxReplicas"]),
        (Mode.DEEPSPEED, TRAINING_JOBS, lambda spec: spec["etReplicaSpecs"]["worker"]["maxReplicas"]),
    ],
)
def test_an_elastic_job_becomes_a_kind_that_can_change_its_workers(mode: Mode, kind: Resource, bounds: Any) -> None:
    resource, manifest = made(mode=mode, nodes=2, elastic=ELASTIC)
    assert (resource, bounds(manifest["spec"])) == (kind, 4)
    assert manifest["apiVersion"] == kind.api_version


@pytest.mark.req("KU-07", "KU-10")
@pytest.mark.parametrize(
    ("served", "fields", "words"),
    [
        (ALL, {"mode": None}, "elastic: on Kubernetes an elastic job needs the mode pytorch, horovod or deepspeed"),
        (
            (JOBS, MPI_JOBS),
            {"mode": Mode.HOROVOD},
            "elastic: this cluster does not serve trainingjobs.kai.alibabacloud.com",
        ),
    ],
)
def test_an_elastic_job_does_not_run_with_a_fixed_number_of_workers(
    served: Collection[Resource], fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(RequestRefused, match=words):
        made(served, elastic=ELASTIC, **fields)


@pytest.mark.req("KU-08")
@pytest.mark.parametrize("more", [{}, {"elastic": ELASTIC}])
def test_beside_a_launcher_only_its_command_is_held(more: dict[str, Any]) -> None:
    _, manifest = made(mode=Mode.HOROVOD, nodes=2, terminal=True, time_limit_seconds=600, **more)
    spec = manifest["spec"]
    roles = spec.get("mpiReplicaSpecs") or spec["etReplicaSpecs"]
    launcher, worker = (
        next(role["template"]["spec"] for name, role in roles.items() if name.lower() == wanted)
        for wanted in ("launcher", "worker")
    )
    assert launcher["containers"][0]["args"][1] == "cockpit"
    assert "command" not in worker["containers"][0]
    # Behind the time limit follows the hold of four hours, with some time to end by itself.
    limited, policy = (launcher, spec) if more else (spec["runPolicy"], spec["runPolicy"])
    assert (limited["activeDeadlineSeconds"], policy["cleanPodPolicy"]) == (600 + 4 * 3600 + 120, "None")


@pytest.mark.req("KU-10", "KU-07")
def test_a_training_job_is_held_by_the_annotation_of_its_operator() -> None:
    _, manifest = made(mode=Mode.HOROVOD, nodes=2, elastic=ELASTIC, hold=True)
    notes = manifest["metadata"]["annotations"]
    assert notes["job-supervisor.kube-ai.io/job-suspended"] == "true"
    assert notes["cockpit/suspended-by"] == "alice"
    _, manifest = made(mode=Mode.HOROVOD, nodes=2, elastic=ELASTIC)
    assert "job-supervisor.kube-ai.io/job-suspended" not in manifest["metadata"]["annotations"]
