"""Jobs in the two forms of kubeflow.org/v1: with a run policy, or with its fields in the spec."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from cockpit.backends.kubernetes import dialects
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.resources import PYTORCH_JOBS
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.schema import SpecFields, spec_fields
from cockpit.errors import RequestRefused
from cockpit.model.asking import WantedLimit
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Mode
from tests.backends.kubernetes.conftest import answers, open_fake
from tests.backends.kubernetes.objects import a_template
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
OPENAPI = "GET /openapi/v3/apis/kubeflow.org/v1"
LONGEST = 20.0
FLAT = ("activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished", "pytorchReplicaSpecs")
WITH_POLICY = ("runPolicy", "elasticPolicy", "nprocPerNode", "pytorchReplicaSpecs")


def schema(*fields: str) -> Mapping[str, Any]:
    kind = {"group": "kubeflow.org", "kind": "PyTorchJob", "version": "v1"}
    spec = {"type": "object", "properties": {name: {"type": "object"} for name in fields}}
    job = {"type": "object", "properties": {"spec": spec}, "x-kubernetes-group-version-kind": [kind]}
    return {"components": {"schemas": {"io.k8s.Status": {"type": "object"}, "org.kubeflow.v1.PyTorchJob": job}}}


async def shown(backend: KubernetesBackend) -> JobRow:
    """Wait until the only job is listed, and return its row."""
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        async for delta in watch:
            for row in delta.changed:
                return row
    raise AssertionError("a watch never ends")


@pytest.mark.req("KU-03")
@pytest.mark.parametrize("terminal", [False, True])
async def test_a_job_is_created_in_the_form_that_the_cluster_serves(
    server: FakeApi, tmp_path: Path, *, terminal: bool
) -> None:
    backend = open_fake(server, tmp_path)
    answers(server, OPENAPI, dict(schema(*FLAT)))
    spec = a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2, time_limit_seconds=600, terminal=terminal)
    await backend.submit([spec])
    made = server.object(f"{JOBS}/new")["spec"]
    # Behind the time limit follows the hold of four hours, with some time to end by itself.
    limit = 600 + 4 * 3600 + 120 if terminal else 600
    assert made.keys() <= {*FLAT}
    assert made["activeDeadlineSeconds"] == limit
    assert made.get("cleanPodPolicy") == ("None" if terminal else None)
    row = await shown(backend)
    assert (row.time_limit_seconds, row.nodes) == (600, 2)
    await backend.set_time_limit(row.id, WantedLimit(300))
    assert server.object(f"{JOBS}/new")["spec"]["activeDeadlineSeconds"] == limit - 300
    # The schema is read once.
    assert sum(each.startswith(OPENAPI) for each in server.requests) == 1
    await backend.close()


@pytest.mark.req("KU-01", "KU-03")
async def test_a_definition_that_another_one_replaces_is_read_again(
    server: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialects, "KEPT_SECONDS", 0.0)
    backend = open_fake(server, tmp_path)
    server.schemas = {OPENAPI.removeprefix("GET "): schema(*FLAT)}
    one, two, three = (
        a_spec(name=name, image="img:1", mode=Mode.PYTORCH, nodes=2, time_limit_seconds=600)
        for name in ("one", "two", "three")
    )
    await backend.submit([one])
    assert "activeDeadlineSeconds" in server.object(f"{JOBS}/one")["spec"]
    server.schemas = {OPENAPI.removeprefix("GET "): schema(*WITH_POLICY)}
    await backend.submit([two])
    assert server.object(f"{JOBS}/two")["spec"]["runPolicy"]["activeDeadlineSeconds"] == 600
    await backend.submit([three])
    assert server.object(f"{JOBS}/three")["spec"].keys() == server.object(f"{JOBS}/two")["spec"].keys()
    await backend.close()


@pytest.mark.req("PF-20")
async def test_a_definition_that_stays_is_not_sent_again(server: FakeApi, api: Api) -> None:
    server.schemas = {OPENAPI.removeprefix("GET "): schema(*FLAT)}
    first = await spec_fields(api, PYTORCH_JOBS, SpecFields())
    assert first.names == {*FLAT}
    # A server that knows the tag answers without a body: what is returned is what was known.
    assert await spec_fields(api, PYTORCH_JOBS, first) is first


@pytest.mark.req("KU-03", "KU-07")
async def test_what_the_form_of_the_cluster_lacks_is_refused_by_name(server: FakeApi, tmp_path: Path) -> None:
    backend = open_fake(server, tmp_path)
    answers(server, OPENAPI, dict(schema(*FLAT)))
    spec = a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2)
    lacks: list[tuple[dict[str, Any], str]] = [
        ({"hold": True}, "cannot be suspended or held: its definition has no field suspend"),
        ({"nodes": 2, "elastic": Elastic(workers=2, max_workers=4)}, "cannot be elastic: .* no field elasticPolicy"),
        ({"partitions": ("gold",)}, "cannot name a queue: its definition has no field schedulingPolicy"),
    ]
    for more, words in lacks:
        with pytest.raises(RequestRefused, match=f"A PyTorchJob of this cluster {words}"):
            await backend.submit([a_spec(**{"name": "new", "image": "img:1", "mode": Mode.PYTORCH, **more})])
    (job,) = await backend.submit([spec])
    await shown(backend)
    with pytest.raises(RequestRefused, match="cannot be suspended or held"):
        await backend.hold(job)
    await backend.close()


@pytest.mark.req("KU-03", "KU-07")
async def test_a_job_of_the_training_operator_keeps_its_run_policy(server: FakeApi, tmp_path: Path) -> None:
    backend = open_fake(server, tmp_path)
    answers(server, OPENAPI, dict(schema(*WITH_POLICY)))
    (job,) = await backend.submit([a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2, hold=True)])
    assert server.object(f"{JOBS}/new")["spec"]["runPolicy"]["suspend"] is True
    assert (await shown(backend)).reason == Held("alice", None)
    await backend.release(job)
    assert server.object(f"{JOBS}/new")["spec"]["runPolicy"]["suspend"] is False
    await backend.close()


@pytest.mark.req("KU-03")
async def test_a_job_in_the_form_of_arena_is_read(server: FakeApi, tmp_path: Path) -> None:
    replicas = {
        "Master": {"replicas": 1, "template": a_template()},
        "Worker": {"replicas": 3, "template": a_template()},
    }
    spec = {"activeDeadlineSeconds": 600, "cleanPodPolicy": "None", "pytorchReplicaSpecs": replicas}
    server.create(JOBS, {"kind": "PyTorchJob", "metadata": {"name": "train"}, "spec": spec})
    backend = open_fake(server, tmp_path)
    (row,) = await backend.jobs()
    assert (row.time_limit_seconds, row.nodes, row.card_milli) == (600, 4, 32_000)
    await backend.close()


@pytest.mark.req("KU-01", "KU-03")
@pytest.mark.parametrize("answer", [Reply(404), Reply.failure(403, "Forbidden", "no"), Reply(body=b"{}")])
async def test_without_a_schema_the_servers_own_check_remains(server: FakeApi, tmp_path: Path, answer: Reply) -> None:
    backend: KubernetesBackend = open_fake(server, tmp_path)
    server.answer_next(OPENAPI, answer)
    await backend.submit([a_spec(name="new", image="img:1", mode=Mode.PYTORCH, nodes=2)])
    assert "runPolicy" in server.object(f"{JOBS}/new")["spec"]
    assert f"POST {JOBS}?fieldValidation=Strict&dryRun=All" in server.requests
    await backend.close()
