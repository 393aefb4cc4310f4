"""Pods with cards that belong to objects of kinds that are not watched: they are one job by their topmost owner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.errors import RequestRefused
from cockpit.model.job import JobState
from tests.backends.kubernetes.conftest import open_fake
from tests.backends.kubernetes.objects import a_template
from tests.doubles.kubernetes_api import FakeApi, Object, Reply

APPS = "/apis/apps/v1"
LWS = "/apis/leaderworkerset.x-k8s.io/v1"
PODS = "/api/v1/namespaces/team-a/pods"


def opened(server: FakeApi, folder: Path, **kinds: tuple[str, ...]) -> KubernetesBackend:
    """Open the cluster. `kinds`: those that it serves beside PyTorchJobs and Jobs, by group."""
    backend = open_fake(server, folder)
    server.kinds |= {APPS if group == "apps" else LWS: names for group, names in kinds.items()}
    return backend


def owned(by: Object | None, version: str = "apps/v1") -> dict[str, Any]:
    if by is None:
        return {}
    reference = {"uid": by["metadata"]["uid"], "kind": by["kind"], "name": by["metadata"]["name"]}
    return {"ownerReferences": [{**reference, "apiVersion": version, "controller": True}]}


def an_object(server: FakeApi, kind: str, name: str, by: Object | None = None, group: str = APPS) -> Object:
    content = {"kind": kind, "metadata": {"name": name, **owned(by)}}
    return server.create(f"{group}/namespaces/team-a/{kind.lower()}s", content)


def a_pod(server: FakeApi, name: str, by: Object, version: str = "apps/v1", *, cards: bool = True) -> Object:
    template = a_template() if cards else {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    template["spec"]["nodeName"] = "n1"
    status = {"phase": "Running"}
    return server.create(
        PODS, {"kind": "Pod", "metadata": {"name": name, **owned(by, version)}, **template, "status": status}
    )


@pytest.mark.req("KU-03")
async def test_the_pods_of_a_deployment_are_one_job(server: FakeApi, tmp_path: Path) -> None:
    deployment = an_object(server, "Deployment", "serve")
    replicas = an_object(server, "ReplicaSet", "serve-abc", deployment)
    for name in ("serve-abc-1", "serve-abc-2"):
        a_pod(server, name, replicas)
    backend = opened(server, tmp_path, apps=("Deployment", "ReplicaSet"))
    (row,) = await backend.jobs()
    assert (row.name, row.state, row.card_milli, row.cpus) == ("serve", JobState.RUNNING, 16_000, 16)
    # Each owner is read once, whatever the number of pods.
    assert sum(each.startswith(f"GET {APPS}/namespaces") for each in server.requests) == 2
    with pytest.raises(RequestRefused, match="A Deployment cannot be suspended; cancel it"):
        await backend.suspend(row.id)
    await backend.cancel(row.id)
    assert server.find(f"{APPS}/namespaces/team-a/deployments/serve") is None
    await backend.close()


@pytest.mark.req("KU-03")
async def test_pods_without_cards_are_no_job_and_their_owners_are_not_read(server: FakeApi, tmp_path: Path) -> None:
    a_pod(server, "web-1", an_object(server, "ReplicaSet", "web"), cards=False)
    backend = open_fake(server, tmp_path)
    assert await backend.jobs() == []
    assert not any(APPS in each for each in server.requests)
    await backend.close()


@pytest.mark.req("KU-01", "KU-03")
@pytest.mark.parametrize(
    "answer", [Reply.failure(403, "Forbidden", "no"), Reply.failure(404, "NotFound", "gone"), Reply(body=b"?")]
)
async def test_an_owner_that_may_not_be_read_is_known_by_its_name(
    server: FakeApi, tmp_path: Path, answer: Reply
) -> None:
    pod = a_pod(server, "set-0", an_object(server, "StatefulSet", "set"))
    server.answer_next(f"GET {APPS}/namespaces", answer)
    backend = opened(server, tmp_path, apps=("StatefulSet",))
    (row,) = await backend.jobs()
    assert (row.name, row.card_milli) == ("set", 8000)
    assert pod["metadata"]["name"] != row.name
    await backend.close()


@pytest.mark.req("KU-03")
async def test_an_owner_of_a_kind_that_is_not_shown_can_be_seen_and_not_changed(
    server: FakeApi, tmp_path: Path
) -> None:
    a_pod(server, "odd-0", {"kind": "Odd", "metadata": {"name": "odd", "uid": "u-odd"}}, "example.com/v1")
    backend: KubernetesBackend = open_fake(server, tmp_path)
    (row,) = await backend.jobs()
    assert (row.name, row.card_milli) == ("odd", 8000)
    with pytest.raises(RequestRefused, match="no right to read an object of the kind Odd"):
        await backend.cancel(row.id)
    await backend.close()


@pytest.mark.req("KU-03")
async def test_a_set_that_a_pod_owns_belongs_to_that_pods_owner(server: FakeApi, tmp_path: Path) -> None:
    """Of a LeaderWorkerSet the leader owns the set of its workers."""
    top = an_object(server, "LeaderWorkerSet", "lws", group=LWS)
    reference = {**owned(top, "leaderworkerset.x-k8s.io/v1")}
    leaders = server.create(
        f"{APPS}/namespaces/team-a/statefulsets", {"kind": "StatefulSet", "metadata": {"name": "lws", **reference}}
    )
    leader = a_pod(server, "lws-0", leaders)
    workers = server.create(
        f"{APPS}/namespaces/team-a/statefulsets",
        {"kind": "StatefulSet", "metadata": {"name": "lws-0", **owned(leader, "v1")}},
    )
    a_pod(server, "lws-0-1", workers)
    backend = opened(server, tmp_path, apps=("StatefulSet",), lws=("LeaderWorkerSet",))
    (row,) = await backend.jobs()
    assert (row.name, row.card_milli) == ("lws", 16_000)
    await backend.close()


@pytest.mark.req("KU-03")
async def test_a_row_goes_with_the_last_of_its_pods(server: FakeApi, tmp_path: Path) -> None:
    a_pod(server, "set-0", an_object(server, "StatefulSet", "set"))
    backend = opened(server, tmp_path, apps=("StatefulSet",))
    (row,) = await backend.jobs()
    watch = backend.watch_jobs()
    assert [each.name for each in (await anext(watch)).changed] == ["set"]
    server.remove(f"{PODS}/set-0")
    assert (await anext(watch)).removed == (row.id,)
    await watch.aclose()  # type: ignore[attr-defined] - it is an asynchronous generator
    await backend.close()
