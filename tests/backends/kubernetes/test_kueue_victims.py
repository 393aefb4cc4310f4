"""Jobs that Kueue has preempted and that still end: over the tests' own API server."""

from __future__ import annotations

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.forecast import Outlook
from cockpit.model.ids import JobId
from cockpit.model.pod_reasons import QueueWaits
from tests.backends.kubernetes.objects import a_condition, merged
from tests.backends.kubernetes.test_explaining import NODES, PODS, a_node, running
from tests.backends.kubernetes.test_kueue_predicted import JOBS, KUEUE, a_queue, add_job, reason_of, serve, words
from tests.doubles.kubernetes_api import FakeApi

pytestmark = pytest.mark.req("KU-04", "KU-05")
WORKLOADS = f"{KUEUE}/namespaces/team-a/workloads"
GONE = "2126-01-01T00:00:30Z"
"""When the pods of the victims are killed at the latest."""
SAID = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more "
    "needed. Pending the preemption of 2 workload(s)"
)


def preempt(server: FakeApi, name: str, said: str) -> None:
    """Have a job with a running pod be preempted; its pod is being deleted."""
    owner = {"uid": server.object(f"{JOBS}/{name}")["metadata"]["uid"], "kind": "Job", "name": name, "controller": True}
    pod = running(f"{name}-0", "n1", 4)
    server.create(PODS, merged(pod, {"metadata": {"ownerReferences": [owner], "deletionTimestamp": GONE}}))
    path = f"{WORKLOADS}/job-{name}"
    conditions = server.object(path)["status"]["conditions"]
    evicted = [a_condition(kind, reason="Preempted", message=said) for kind in ("Evicted", "Preempted")]
    server.change(path, {"status": {"conditions": [*conditions, *evicted]}})


async def explained(backend: KubernetesBackend, name: str) -> Outlook:
    return await backend.explain(await number(backend, name))


async def number(backend: KubernetesBackend, name: str) -> JobId:
    return next(row.id for row in await backend.jobs() if row.name == name)


@pytest.fixture
def crowded(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    """A queue of 8 cards, which two jobs use, and a job of a higher priority."""
    serve(server, a_queue(preemption={"withinClusterQueue": "LowerPriority"}))
    server.create(NODES, a_node("n1"))
    for name in ("one", "two"):
        add_job(server, name, 4, admitted=True, priority=-10)
    add_job(server, "urgent", 8, said=SAID)
    return backend


@pytest.mark.parametrize("names_it", [True, False])
async def test_the_reason_says_which_preempted_jobs_still_end(
    crowded: KubernetesBackend, server: FakeApi, *, names_it: bool
) -> None:
    uid = server.object(f"{WORKLOADS}/job-urgent")["metadata"]["uid"]
    by = f" (UID: {uid}, JobUID: other)" if names_it else ""
    for name in ("one", "two"):
        preempt(server, name, f"Preempted to accommodate a workload{by} due to prioritization in the ClusterQueue")
    outlook = await explained(crowded, "urgent")
    victims = {await number(crowded, "one"), await number(crowded, "two")}
    reason = reason_of(outlook)
    assert ({*reason.jobs}, reason.ending) == (victims, 2)
    assert "Waits for 2 preempted jobs to end in queue gpu; Kueue preempts job " in words(outlook)
    # They keep what they have until they are gone, and nothing of it is free before.
    assert not outlook.forecast.now
    assert {each.job for each in outlook.forecast.after} == victims
    assert outlook.forecast.likely_at == max(each.end_at for each in outlook.forecast.after)
    assert {*outlook.holders} == victims
    assert (reason.quotas[0].used, reason.quotas[0].free) == ("8", "0")


async def test_victims_of_another_job_are_no_reason(crowded: KubernetesBackend, server: FakeApi) -> None:
    preempt(server, "one", "Preempted to accommodate a workload (UID: of-another, JobUID: x) due to reclamation")
    # Kueue itself says how many there are, and not which.
    (row,) = [row for row in await crowded.jobs() if row.name == "urgent"]
    assert isinstance(row.reason, QueueWaits)
    assert (row.reason.jobs, row.reason.ending) == ((), 2)
    assert reason_of(await explained(crowded, "urgent")).jobs == ()


async def test_what_ending_jobs_use_is_not_free_for_others(crowded: KubernetesBackend, server: FakeApi) -> None:
    uid = server.object(f"{WORKLOADS}/job-urgent")["metadata"]["uid"]
    for name in ("one", "two"):
        preempt(server, name, f"Preempted to accommodate a workload (UID: {uid}, JobUID: x) due to prioritization")
    add_job(server, "small", 4, priority=-20)
    outlook = await explained(crowded, "small")
    assert not outlook.forecast.now
    assert reason_of(outlook).quotas[0].used == "8"


async def test_one_that_has_ended_waits_again(crowded: KubernetesBackend, server: FakeApi) -> None:
    said = "Preempted to accommodate a workload (UID: x) due to prioritization in the ClusterQueue"
    path = f"{WORKLOADS}/job-one"
    evicted = [a_condition(kind, reason="Preempted", message=said) for kind in ("Evicted", "Preempted")]
    pending = a_condition("QuotaReserved", true=False, reason="Pending", message=said)
    server.change(path, {"status": {"admission": None, "conditions": [pending, *evicted]}})
    server.change(f"{JOBS}/one", {"spec": {"suspend": True}})
    outlook = await explained(crowded, "urgent")
    assert reason_of(outlook).jobs == ()
    assert reason_of(outlook).quotas[0].used == "4"
