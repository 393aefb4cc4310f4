"""Jobs in queues of KubeQueue, and quota trees, on a real API server with its controllers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.kubernetes.writing import MOST_TRIES
from cockpit.errors import RequestRefused
from cockpit.formats.quotatree import read_quota_tree
from cockpit.model.capabilities import Ability
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.reasons import QuotaFull, QuotaWaits
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Mode, NodeSpec
from tests.builders import a_spec
from tests.real.kubernetes.cluster import ADMIN, ALICE, VIEWER
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.kube_queue import TREES, UNITS, a_queued_job, a_tree, dequeue, enqueue, serve_kube_queue
from tests.real.kubernetes.test_backend import cockpit_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
SUSPEND = "scheduling.x-k8s.io/suspend"


@pytest.fixture(autouse=True)
def kube_queue(cluster: RealKubernetes) -> Iterator[None]:
    """The kinds of KubeQueue; a tree that the test makes is gone afterwards."""
    serve_kube_queue(cluster)
    yield
    cluster.admin.delete(f"{TREES}/tree")


def queue_job(
    cluster: RealKubernetes, namespace: str, name: str, *, priority: int = 0, limit: int | None = None
) -> None:
    """Create a Job of 8 cards with its queue unit."""
    job = a_queued_job(name, cards=8, seconds=limit)
    cluster.admin.create(JOBS.format(namespace), job)
    enqueue(cluster, namespace, job, cards=8, priority=priority)


@pytest.mark.req("KU-04", "KU-05", "FL-03")
async def test_a_job_waits_for_its_quota_and_runs_when_kube_queue_lets_it_go(
    cluster: RealKubernetes, namespace: str
) -> None:
    cluster.admin.create(TREES, a_tree(namespace, most=12))
    queue_job(cluster, namespace, "first", limit=3600)
    queue_job(cluster, namespace, "last")
    queue_job(cluster, namespace, "next", priority=5)
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        dequeue(cluster, namespace, "first")
        running = await until(backend, "first", lambda row: row.state is JobState.RUNNING)
        waiting = await until(backend, "last", lambda row: isinstance(row.reason, QueueWaits))
        assert (waiting.state, waiting.partitions) == (JobState.QUEUED, ("root/team",))
        outlook = await backend.explain(waiting.id)
        assert outlook.explanation is not None
        reason = outlook.explanation.reason
        assert isinstance(reason, QuotaWaits)
        assert reason.limit == QuotaFull("root/team", "gres/gpu", 12, 8, 8)
        assert outlook.explanation.position == 2
        assert (reason.after, running.started_at) == (running.id, running.started_at)
        assert running.started_at is not None
        assert reason.fits_at == running.started_at + 3_600_000
        rows = {row.path: row for row in (await backend.queues()).rows}
        assert (rows["root/team"].used, rows["root/team"].waiting, rows["root/team"].running) == (
            {"gres/gpu": 8000},
            2,
            1,
        )
        # KubeQueue deletes the unit of a job that has ended; the next one is let go.
        await backend.cancel(running.id)
        cluster.admin.delete(f"{UNITS.format(namespace)}/first-job-qu")
        dequeue(cluster, namespace, "next")
        await until(backend, "next", lambda row: row.state is JobState.RUNNING)


@pytest.mark.req("KU-12", "FL-01")
async def test_a_quota_tree_is_applied_changed_and_removed_on_the_server(
    cluster: RealKubernetes, namespace: str
) -> None:
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        await backend.apply_quota(read_quota_tree("tree", json.dumps(a_tree(namespace, most=12))))
        cluster.admin.merge(
            f"{TREES}/tree",
            {"metadata": {"labels": {"theirs": "stays"}}, "spec": {"root": {"attributes": {"theirs": "stays"}}}},
        )
        wider = read_quota_tree("tree", json.dumps(a_tree(namespace, most=16)))

        async def change_labels() -> None:
            for number in range(MOST_TRIES - 1):
                await asyncio.to_thread(
                    cluster.admin.merge, f"{TREES}/tree", {"metadata": {"labels": {"number": str(number)}}}
                )

        # Each of these changes can be the cause of one conflict at most, which is fewer than there are attempts.
        await asyncio.gather(change_labels(), backend.apply_quota(wider))
        served = cluster.admin.get(f"{TREES}/tree")
        assert served["metadata"]["labels"] == {"theirs": "stays", "number": str(MOST_TRIES - 2)}
        assert served["spec"]["root"]["attributes"] == {"theirs": "stays"}
        assert served["spec"]["root"]["children"][0]["max"] == {"nvidia.com/gpu": 16}
        assert (await backend.queues()).admin
        await backend.remove_quota()
        assert not cluster.admin.exists(f"{TREES}/tree")


@pytest.mark.req("KU-01", "KU-04")
async def test_who_may_not_read_the_tree_still_sees_the_queue_units(cluster: RealKubernetes, namespace: str) -> None:
    cluster.admin.create(TREES, a_tree(namespace, most=12))
    queue_job(cluster, namespace, "train")
    units = UNITS.format(namespace)
    wait_until("alice may not read queue units", lambda: cluster.api(ALICE).get(units)["items"])
    async with cockpit_of(cluster, ALICE, namespace) as backend:
        row = await until(backend, "train", lambda row: isinstance(row.reason, QueueWaits))
        assert isinstance(row.reason, QueueWaits)
        assert row.reason.code == "Enqueued"
        why = backend.capabilities.why_not(Ability.QUOTA_TREE)
        assert "elasticquotatrees.scheduling.sigs.k8s.io is forbidden" in why
        # The units of this cluster have no field that holds a job in its queue.
        with pytest.raises(RequestRefused, match=r"cannot hold job .* in its queue") as refused:
            await backend.hold(row.id)
        assert refused.value.refusal.kind is RefusalKind.UNAVAILABLE
    async with cockpit_of(cluster, VIEWER, namespace) as backend:
        trouble = " ".join((await backend.status()).trouble)
        assert "queueunits.scheduling.x-k8s.io cannot be read" in trouble
        with pytest.raises(RequestRefused, match="Quota trees cannot be read"):
            await backend.remove_quota()


@pytest.mark.req("KU-04", "KU-07")
@pytest.mark.usefixtures("training_operator")
async def test_a_submitted_pytorch_job_gets_no_pods_before_kube_queue_lets_it_go(
    cluster: RealKubernetes, namespace: str
) -> None:
    cluster.admin.create(TREES, a_tree(namespace, most=12))
    job = f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/train"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    async with cockpit_of(cluster, ADMIN, namespace) as backend:
        spec = a_spec("train", image="none", mode=Mode.PYTORCH, nodes=2, specs=(NodeSpec(card_milli=1000),))
        await backend.submit([spec])
        await until(backend, "train", lambda row: row.reason == QueueWaits("KubeQueue", "root/team"))

        def is_suspended() -> bool:
            conditions = cluster.admin.get(job).get("status", {}).get("conditions", ())
            return any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions)

        await asyncio.to_thread(wait_until, "the operator does not suspend the job", is_suspended)
        assert cluster.admin.get(pods)["items"] == []
        # What newer versions of KubeQueue write when they dequeue a job.
        cluster.admin.merge(
            job, {"metadata": {"annotations": {SUSPEND: "false"}}, "spec": {"runPolicy": {"suspend": False}}}
        )
        await until(backend, "train", lambda row: row.state is JobState.RUNNING)
