"""What holds cards without being a job: Kubernetes' own controllers make the pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.errors import RequestRefused
from cockpit.model.job import JobState
from tests.real.kubernetes.cluster import ALICE, VIEWER
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.test_backend import cockpit_of, until

if TYPE_CHECKING:
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
LABELS = {"app": "serve"}


def pod_template(cards: int = 1) -> dict[str, Any]:
    container = {"name": "main", "image": "example/serve:1", "resources": {"limits": {"nvidia.com/gpu": str(cards)}}}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}


def controlled(kind: str, name: str, replicas: int) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": pod_template()}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.req("KU-03", "KU-07")
async def test_a_deployment_with_cards_is_seen_and_deleted_as_one(cluster: RealKubernetes, namespace: str) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    cluster.admin.create(deployments, controlled("Deployment", "serve", 3))
    async with cockpit_of(cluster, VIEWER, namespace) as backend:
        row = await until(backend, "serve", lambda row: row.card_milli == 3000 and row.state is JobState.RUNNING)
        with pytest.raises(RequestRefused, match="cannot delete resource"):
            await backend.cancel(row.id)
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        # Everybody sees the same number.
        assert [each.id for each in await backend.jobs()] == [row.id]
        with pytest.raises(RequestRefused, match="A Deployment cannot be suspended"):
            await backend.suspend(row.id)
        await backend.cancel(row.id)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wait_until("its pods are left", lambda: not cluster.admin.get(pods)["items"])


@pytest.mark.req("KU-03")
async def test_a_stateful_set_and_a_run_of_a_cron_job_are_seen(cluster: RealKubernetes, namespace: str) -> None:
    cluster.admin.create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", controlled("StatefulSet", "set", 2))
    template = pod_template(2)
    template["spec"]["restartPolicy"] = "Never"
    cron = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    made = cluster.admin.create(
        f"/apis/batch/v1/namespaces/{namespace}/cronjobs",
        {"metadata": {"name": "nightly"}, "spec": {**cron, "suspend": True}},
    )
    # One run, as the controller would make it at its time.
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": made["metadata"]["uid"]}
    cluster.admin.create(
        f"/apis/batch/v1/namespaces/{namespace}/jobs",
        {
            "metadata": {"name": "nightly-1", "ownerReferences": [{**owner, "controller": True}]},
            "spec": cron["jobTemplate"]["spec"],
        },
    )
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        await until(backend, "set", lambda row: row.card_milli == 2000)
        row = await until(backend, "nightly-1", lambda row: row.state is JobState.RUNNING)
        assert row.card_milli == 2000
        assert {each.name for each in await backend.jobs()} == {"set", "nightly-1"}
