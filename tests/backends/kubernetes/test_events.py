"""The events of jobs: what Kubernetes reports of their objects, and what cockpit saw."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.events import ClusterReported, EventRecord, JobHeld, JobPlaced, JobReleased
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.present.events.sentences import event_kind
from tests.backends.kubernetes.objects import a_condition, a_template
from tests.doubles.kubernetes_api import FakeApi, Reply

JOBS = "/apis/batch/v1/namespaces/team-a/jobs"
PODS = "/api/v1/namespaces/team-a/pods"
EVENTS = "/api/v1/namespaces/team-a/events"
LONGEST = 20.0


def a_job(name: str = "train") -> dict[str, Any]:
    return {"kind": "Job", "metadata": {"name": name}, "spec": {"template": a_template()}}


def a_pod(owner: dict[str, Any], name: str) -> dict[str, Any]:
    reference = {"uid": owner["metadata"]["uid"], "kind": "Job", "name": "train", "controller": True}
    return {"kind": "Pod", "metadata": {"name": name, "ownerReferences": [reference]}, **a_template()}


def an_event(name: str, about: dict[str, Any], reason: str, **more: Any) -> dict[str, Any]:
    involved = {"kind": about["kind"], "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}
    return {"metadata": {"name": name}, "involvedObject": involved, "reason": reason, "message": f"{reason} it", **more}


def reports(records: list[EventRecord]) -> list[tuple[str, str, int]]:
    found = [each.body for each in records if isinstance(each.body, ClusterReported)]
    return [(each.about, each.reason, each.count) for each in found]


@pytest.mark.req("KU-05", "UI-10")
async def test_events_of_a_job_and_its_pods_are_listed_in_order_of_time(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    job, other = server.create(JOBS, a_job()), server.create(JOBS, a_job("other"))
    pod = server.create(PODS, a_pod(job, "train-0"))
    # The older form of an event, the newer one, and one of a series.
    late, early = "2026-03-01T09:30:00Z", "2026-03-01T09:00:00Z"
    old = {"lastTimestamp": late, "count": 7, "source": {"component": "default-scheduler"}}
    server.create(EVENTS, an_event("e1", pod, "FailedScheduling", **old))
    new = {"eventTime": "2026-03-01T09:10:00.123456Z", "reportingComponent": "job-controller"}
    server.create(EVENTS, an_event("e2", job, "SuccessfulCreate", **new))
    series = {"eventTime": early, "series": {"count": 3, "lastObservedTime": "2026-03-01T09:20:00Z"}}
    server.create(EVENTS, an_event("e3", pod, "Pulling", **series))
    server.create(EVENTS, an_event("e4", other, "SuccessfulCreate", eventTime=early))
    (number,) = [row.id for row in await backend.jobs() if row.name == "train"]
    found = await backend.events(job=number)
    assert reports(found) == [
        ("Job train", "SuccessfulCreate", 1),
        ("Pod train-0", "Pulling", 3),
        ("Pod train-0", "FailedScheduling", 7),
    ]
    assert [each.actor for each in found] == ["job-controller", "Kubernetes", "default-scheduler"]
    assert [each.body for each in (await backend.job(number)).events] == [each.body for each in found]
    asked = [each for each in server.requests if each.startswith(f"GET {EVENTS}")]
    assert f"fieldSelector=involvedObject.uid%3D{pod['metadata']['uid']}" in "".join(asked)
    everything = await backend.events()
    assert len(reports(everything)) == 4
    assert await backend.events(limit=1) == everything[-1:]


@pytest.mark.req("KU-05")
async def test_where_a_job_was_placed_and_that_it_ended_are_events(backend: KubernetesBackend, server: FakeApi) -> None:
    job = server.create(JOBS, a_job())
    (row,) = await backend.jobs()
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        await anext(watch)
        started = {"name": "main", "state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}
        status = {"status": {"phase": "Running", "containerStatuses": [started]}}
        server.create(PODS, a_pod(job, "train-0") | a_template(spec={"nodeName": "n1"}) | status)
        while (await anext(watch)).changed[0].state is not JobState.RUNNING:
            pass
        # Its pod is deleted before its end is known.
        server.remove(f"{PODS}/train-0")
        server.change(f"{JOBS}/train", {"status": {"conditions": [a_condition("Failed")]}})
        while (await anext(watch)).changed[0].state is not JobState.ERROR:
            pass
    found = [each.body for each in await backend.events(job=row.id)]
    placed = next(each for each in found if isinstance(each, JobPlaced))
    assert [(part.node, part.card_milli) for part in placed.placement] == [("n1", 8000)]
    assert [event_kind(each) for each in found][-1] == "job_ended"


@pytest.mark.req("KU-05")
async def test_an_event_that_kubernetes_has_forgotten_stays_and_a_repeated_one_is_new(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    job = server.create(JOBS, a_job())
    server.create(EVENTS, an_event("e1", job, "Suspended", lastTimestamp="2026-03-01T09:00:00Z", count=1))
    server.create(EVENTS, an_event("e2", job, "Resumed", lastTimestamp="2026-03-01T09:01:00Z", count=1))
    (row,) = await backend.jobs()
    first = await backend.events(job=row.id)
    server.remove(f"{EVENTS}/e1")
    server.change(f"{EVENTS}/e2", {"count": 2, "lastTimestamp": "2026-03-01T09:05:00Z"})
    assert reports(await backend.events(job=row.id)) == [("Job train", "Suspended", 1), ("Job train", "Resumed", 2)]
    (repeated,) = await backend.events(job=row.id, after=first[-1].seq)
    assert reports([repeated]) == [("Job train", "Resumed", 2)]


@pytest.mark.req("KU-05")
async def test_of_a_job_with_many_pods_the_events_of_the_namespace_are_listed_once(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    job = server.create(JOBS, a_job())
    pods = [server.create(PODS, a_pod(job, f"train-{index}")) for index in range(20)]
    for index, pod in enumerate(pods):
        server.create(EVENTS, an_event(f"e{index}", pod, "Scheduled", eventTime="2026-03-01T09:00:00Z"))
    (row,) = await backend.jobs()
    assert len(reports(await backend.events(job=row.id))) == 20
    assert [each for each in server.requests if each.startswith(f"GET {EVENTS}")] == [f"GET {EVENTS}?limit=500"]


@pytest.mark.req("KU-01", "KU-05")
async def test_without_the_right_to_read_events_what_cockpit_saw_is_listed(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    server.create(JOBS, a_job())
    (row,) = await backend.jobs()
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        await anext(watch)
        await backend.hold(row.id)
        assert isinstance((await anext(watch)).changed[0].reason, Held)
        await backend.release(row.id)
        await anext(watch)
    server.answer_next(f"GET {EVENTS}", Reply.failure(403, "Forbidden", "cannot list events"))
    found = await backend.events(job=row.id)
    assert [type(each.body) for each in found] == [JobHeld, JobReleased]
    await backend.cancel(row.id)
    async with asyncio.timeout(LONGEST), aclosing(backend.watch_jobs()) as watch:
        await anext(watch)
    detail = await backend.job(row.id)
    assert [event_kind(each.body) for each in detail.events] == ["job_held", "job_released", "job_ended"]
    assert detail.recorded


@pytest.mark.req("UI-10")
async def test_a_job_that_starts_while_it_is_watched_has_the_event_of_its_start(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    job = server.create(JOBS, a_job())
    started = {"containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}]}
    async with aclosing(backend.watch_jobs()) as watch, asyncio.timeout(LONGEST):
        (row,) = (await anext(watch)).changed
        # Its node is not among those that the user may see.
        pod = {**a_pod(job, "train-0"), "status": {"phase": "Running", **started}}
        server.create(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "hidden"}})
        async for delta in watch:
            if any(each.state is JobState.RUNNING for each in delta.changed):
                break
    records = await backend.events(job=row.id)
    assert [event_kind(each.body) for each in records if isinstance(each.body, JobPlaced)] == ["job_placed"]


@pytest.mark.req("PF-20")
async def test_a_panel_that_is_shown_asks_for_events_seldom(backend: KubernetesBackend, server: FakeApi) -> None:
    server.create(EVENTS, an_event("e1", server.create(JOBS, a_job()), "SuccessfulCreate"))
    (row,) = await backend.jobs()
    for _ in range(3):
        assert reports(list((await backend.job(row.id)).events)) == [("Job train", "SuccessfulCreate", 1)]
    asked = [each for each in server.requests if each.startswith(f"GET {EVENTS}")]
    assert len(asked) == 1
    await backend.events(job=row.id)
    assert len([each for each in server.requests if each.startswith(f"GET {EVENTS}")]) == 2
