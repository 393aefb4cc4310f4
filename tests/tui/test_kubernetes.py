"""What a Kubernetes cluster asks for on the screen: a new job's image, and a word before pods are deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.runtime.clock import SystemClock
from cockpit.tui.opening import Session
from tests.backends.kubernetes.conftest import open_fake
from tests.backends.kubernetes.objects import a_template
from tests.doubles.kubernetes_api import FakeApi, Reply
from tests.tui.driver import Cockpit, at_the_cockpit

JOBS = "/apis/batch/v1/namespaces/team-a/jobs"


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with FakeApi() as server:
        yield server


@asynccontextmanager
async def at_kubernetes(server: FakeApi, folder: Path) -> AsyncIterator[Cockpit]:
    server.readable = ("",)
    backend = open_fake(server, folder)
    session = Session(
        backend=backend,
        now=SystemClock().now,
        user="alice",
        read_jobs=lambda source, text, folder: read_jobs(source, text, folder, defaults=Defaults()),
        close=backend.close,
    )
    async with at_the_cockpit(session, (120, 40)) as cockpit:
        yield cockpit


@pytest.mark.req("UI-08", "KU-07")
async def test_the_image_is_a_field_of_its_own_and_its_lack_is_shown_there(server: FakeApi, tmp_path: Path) -> None:
    async with at_kubernetes(server, tmp_path) as cockpit:
        await cockpit.press("n").sees("New job", "image").type("mine").press("Down").type("true")
        await cockpit.sees("a pod needs an image", "1 field is wrong").press("Ctrl-s")
        focused = cockpit.app.focused
        assert focused is not None
        await cockpit.type("example/train:1").misses("a pod needs an image").press("Ctrl-s").sees("submitted")
    (container,) = server.object(f"{JOBS}/mine")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "example/train:1"


@pytest.mark.req("KU-07", "UI-20")
async def test_a_suspension_that_deletes_pods_is_asked_for(server: FakeApi, tmp_path: Path) -> None:
    job = server.create(JOBS, {"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": a_template()}})
    owner = {"uid": job["metadata"]["uid"], "kind": "Job", "name": "train", "controller": True}
    status = {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": "2026-03-01T09:00:00Z"}}}]}
    pod = {"kind": "Pod", "metadata": {"name": "train-0", "ownerReferences": [owner]}, **a_template(), "status": status}
    pod["spec"] = {**pod["spec"], "nodeName": "n1"}
    server.create("/api/v1/namespaces/team-a/pods", pod)
    async with at_kubernetes(server, tmp_path) as cockpit:
        await cockpit.sees("train", "running").press("U").sees("Suspend job", "deletes the pods of a suspended job")
        await cockpit.press("n").misses("Suspend job")
        assert "suspend" not in server.object(f"{JOBS}/train")["spec"]
        await cockpit.press("U").sees("Suspend job").press("y").sees("held by its suspend field")
    assert server.object(f"{JOBS}/train")["spec"]["suspend"] is True


@pytest.mark.req("UI-14", "KU-07")
async def test_the_log_before_a_restart_is_shown_and_merging_says_why_not(server: FakeApi, tmp_path: Path) -> None:
    job = server.create(JOBS, {"kind": "Job", "metadata": {"name": "train"}, "spec": {"template": a_template()}})
    owner = {"uid": job["metadata"]["uid"], "kind": "Job", "name": "train", "controller": True}
    running = {"running": {"startedAt": "2026-03-01T09:00:00Z"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 1, "state": running}]}
    pod = {"kind": "Pod", "metadata": {"name": "train-0", "ownerReferences": [owner]}, **a_template(), "status": status}
    pod["spec"] = {**pod["spec"], "nodeName": "n1"}
    server.create("/api/v1/namespaces/team-a/pods", pod)
    log = "GET /api/v1/namespaces/team-a/pods/train-0/log?container=main"
    server.answer_next(f"{log}&follow=true", Reply(body=b"second start\n"))
    server.answer_next(f"{log}&previous=true", Reply(body=b"first start\nkilled\n"))
    async with at_kubernetes(server, tmp_path) as cockpit:
        await cockpit.sees("train", "running").press("l").sees("second start").press("p")
        await cockpit.sees("attempt 1", "first start", "killed").press("p").sees("second start").misses("attempt 1")
        await cockpit.press("O").sees("Kubernetes stores stdout")
