"""What jobs held: those that have ended and are still there, those that are gone, and those that run."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from tests.backends.kubernetes.objects import ENDED, STARTED, a_condition, a_template
from tests.doubles.kubernetes_api import FakeApi

JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
PODS = "/api/v1/namespaces/team-a/pods"
HOUR = 3_600_000
STARTED_AT = Millis(1_772_355_900_000)
"""`STARTED`; `ENDED` is an hour later."""


def create_job(server: FakeApi, name: str, user: str, *, pods: int, status: dict[str, Any]) -> None:
    metadata = {"name": name, "annotations": {"cockpit/submitted-by": user}}
    spec = {"template": a_template(), "parallelism": 2, "completions": 2}
    job = server.create(JOBS, {"kind": "Job", "metadata": metadata, "spec": spec, "status": status})
    reference = {"uid": job["metadata"]["uid"], "kind": "Job", "name": name, "controller": True}
    has_ended = bool(status)
    state = (
        {"terminated": {"exitCode": 0, "startedAt": STARTED, "finishedAt": ENDED}}
        if has_ended
        else {"running": {"startedAt": STARTED}}
    )
    for index in range(pods):
        body = {"kind": "Pod", "metadata": {"name": f"{name}-{index}", "ownerReferences": [reference]}}
        phase = {
            "phase": "Succeeded" if has_ended else "Running",
            "containerStatuses": [{"name": "main", "state": state}],
        }
        server.create(PODS, body | a_template(spec={"nodeName": "n1"}) | {"status": phase})


COMPLETE = {"conditions": [a_condition("Complete")], "startTime": STARTED, "completionTime": ENDED}


@pytest.mark.req("KU-07", "UI-10")
async def test_ended_jobs_have_what_their_pods_held(backend: KubernetesBackend, server: FakeApi) -> None:
    create_job(server, "whole", "ann", pods=2, status=COMPLETE)
    # Its pods are deleted already: the size is that of its spec, the time that of its controller.
    create_job(server, "swept", "bob", pods=0, status=COMPLETE)
    create_job(server, "running", "ann", pods=2, status={})
    ended = {each.row.name: each for each in await backend.accounting()}
    assert ended.keys() == {"whole", "swept"}
    for each in ended.values():
        assert (each.row.state, each.elapsed_ms) == (JobState.SUCCEEDED, HOUR)
        assert (each.card_milli_ms, each.cpu_held_ms) == (16_000 * HOUR, 16 * HOUR)
        assert (each.cpu_ms, each.peak_memory_mib) == (None, None)
    assert [each.row.name for each in await backend.accounting(user="bob")] == ["swept"]
    assert await backend.accounting(until=Millis(STARTED_AT + HOUR)) == []
    # One that the cluster forgets while cockpit is connected stays.
    server.remove(f"{JOBS}/whole")
    assert {each.row.name for each in await backend.accounting()} == {"whole", "swept"}


@pytest.mark.req("KU-07", "UI-10")
async def test_allocated_resources_of_ended_and_running_jobs_are_summed_by_interval(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    create_job(server, "whole", "ann", pods=2, status=COMPLETE)
    create_job(server, "running", "ann", pods=1, status={})
    edges = [STARTED_AT, Millis(STARTED_AT + HOUR // 2), Millis(STARTED_AT + HOUR), Millis(STARTED_AT + 2 * HOUR)]
    spent = await backend.spending(edges)
    found = [[(each.user, each.project, each.card_milli_ms) for each in part] for part in spent.stretches]
    half = HOUR // 2
    assert found == [
        [("ann", "team-a", 24_000 * half)],
        [("ann", "team-a", 24_000 * half)],
        [("ann", "team-a", 8_000 * HOUR)],
    ]


@pytest.mark.req("KU-06")
async def test_a_pod_that_requests_any_number_of_cards_is_counted(backend: KubernetesBackend, server: FakeApi) -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 10**12}}}
    state = {"terminated": {"exitCode": 1, "startedAt": STARTED, "finishedAt": ENDED}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": state}]}
    spec = {"nodeName": "n1", "containers": [container]}
    server.create(PODS, {"kind": "Pod", "metadata": {"name": "huge"}, "spec": spec, "status": status})
    (job,) = await backend.accounting()
    assert (job.row.name, job.elapsed_ms) == ("huge", HOUR)
