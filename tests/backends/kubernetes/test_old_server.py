"""A server of Kubernetes 1.20, the oldest that clusters with cards are still met on.

What it serves is that of its documented discovery: CronJobs are in batch/v1beta1, resource.k8s.io does not exist, Jobs
have no `suspend`, nobody is told who the user is (SelfSubjectReview came with 1.27), and unknown fields are dropped
without a word, as `fieldValidation` came with 1.25.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.backends.kubernetes import session
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.opening import open_context
from cockpit.backends.kubernetes.writing import dropped_fields
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import NodeSpec
from tests.backends.kubernetes.conftest import answers, write_kubeconfig
from tests.backends.kubernetes.objects import GPU, a_template
from tests.builders import a_spec
from tests.doubles.kubernetes_api import FakeApi, Reply

pytestmark = pytest.mark.req("KU-01")

OF_1_20 = {
    "/api/v1": ("configmaps", "events", "namespaces", "nodes", "pods", "pods/exec", "pods/log", "secrets", "services"),
    "/apis/apps/v1": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "/apis/authorization.k8s.io/v1": ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
    "/apis/batch/v1": ("jobs", "jobs/status"),
    "/apis/batch/v1beta1": ("cronjobs", "cronjobs/status"),
    "/apis/scheduling.k8s.io/v1": ("priorityclasses",),
}
JOBS = "/apis/batch/v1/namespaces/team-a/jobs"


@pytest.fixture
async def backend(server: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesBackend]:
    monkeypatch.setattr(session, "COALESCE_SECONDS", 0.0)
    server.version, server.kinds, server.unknown = "v1.20.15", OF_1_20, ("spec.suspend",)
    answers(server, "POST /apis/authorization.k8s.io", {"status": {"allowed": True}})
    server.create(JOBS, {"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": a_template()}})
    server.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {GPU: "8"}}})
    backend = open_context("fake", {"KUBECONFIG": str(write_kubeconfig(tmp_path, server.address))})
    yield backend
    await backend.close()


async def the_job(backend: KubernetesBackend) -> JobId:
    (row,) = await backend.jobs()
    return row.id


async def test_an_old_server_is_read(backend: KubernetesBackend, server: FakeApi) -> None:
    server.answer_next("POST /apis/authentication.k8s.io", not_found())
    assert [row.name for row in await backend.jobs()] == ["train"]
    assert [row.node.name for row in await backend.nodes()] == ["n1"]
    shown = await backend.status()
    # The kubeconfig's name counts where the server does not tell the user's.
    assert (shown.user, shown.version.partition(",")[0], shown.trouble) == ("ann", "Kubernetes v1.20.15", ())


async def test_an_old_server_is_written_to(backend: KubernetesBackend, server: FakeApi) -> None:
    server.answer_next("POST /apis/authentication.k8s.io", not_found())
    spec = a_spec("new", image="example/train:1", specs=(NodeSpec(card_milli=1000),))
    await backend.submit([spec])
    assert server.object(f"{JOBS}/new")["spec"]["template"]["spec"]["containers"][0]["image"] == "example/train:1"


async def test_a_field_that_an_old_server_drops_is_named(backend: KubernetesBackend, server: FakeApi) -> None:
    server.answer_next("POST /apis/authentication.k8s.io", not_found())
    with pytest.raises(RequestRefused, match=r"knows no spec\.suspend in this kind of object") as refused:
        await backend.hold(await the_job(backend))
    assert refused.value.refusal.kind is RefusalKind.UNAVAILABLE


def not_found() -> Reply:
    return Reply(404, b"404 page not found\n", {"Content-Type": "text/plain"})


def test_dropped_fields_are_those_with_a_value() -> None:
    sent = {"a": 1, "b": {"c": True, "d": {}}, "e": [{"f": 1}, {"g": 2}], "h": None, "i": [{"j": 1}]}
    assert dropped_fields(sent, {"a": 2, "b": {"c": True}, "e": [{"f": 1}, {"g": 3}], "i": []}, "s") == []
    assert dropped_fields(sent, {"b": {}, "e": [{}, {"g": 2}], "i": [{}]}, "s") == [
        "s.a",
        "s.b.c",
        "s.e[0].f",
        "s.i[0].j",
    ]
