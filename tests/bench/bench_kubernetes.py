"""What a long list of pods costs, from the first request to the drawn rows, and the loop's longest stall meanwhile."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.present.columns import Context
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.tasks import Tasks
from cockpit.tui.opening import GC_THRESHOLDS
from cockpit.tui.rows.lists import JobRows

if TYPE_CHECKING:
    from tests.bench.figures import Figures

PODS, PAGE, ROUNDS = 10_000, 500, 3
COLUMNS, LINES = 120, 30
TICK_SECONDS = 0.002
STAMP = "2026-03-01T09:00:00Z"


def a_pod(number: int) -> dict[str, Any]:
    """A pod as large as real ones: with what an API server and a kubelet add to what a user writes."""
    containers = [
        {
            "name": "main",
            "image": "registry.example/train:1",
            "command": ["python", "-u", "train.py"],
            "env": [{"name": f"SETTING_{each}", "value": "x" * 20} for each in range(20)],
            "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
            "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        }
    ]
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": STAMP}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    managed = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {f"f:{each}": {} for each in range(60)}}] * 2
    return {
        "metadata": {
            "name": f"train-{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"5a0c9a62-0000-4000-8000-{number:012}",
            "resourceVersion": str(number),
            "creationTimestamp": STAMP,
            "labels": {f"label-{each}": "value" for each in range(8)},
            "managedFields": managed,
        },
        "spec": {"containers": containers, "nodeName": f"n{number // 8}", "schedulerName": "default-scheduler"},
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "startTime": STAMP,
            "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {"startedAt": STAMP}}}],
        },
    }


def serve() -> None:
    """Serve the pods from memory, so that a page costs the server nothing but its bytes. Prints the address."""
    from aiohttp import web

    pages = []
    for first in range(0, PODS, PAGE):
        after = str(first + PAGE) if first + PAGE < PODS else ""
        metadata = {"resourceVersion": "99999", "continue": after}
        items = [a_pod(number) for number in range(first, first + PAGE)]
        pages.append(json.dumps({"metadata": metadata, "items": items}).encode())

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        if request.method == "POST":
            allowed = {"allowed": True, "userInfo": {"username": "ann"}}
            return web.json_response({"status": allowed})
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
        if request.path == "/api/v1/pods":
            return web.Response(body=pages[int(request.query.get("continue") or 0) // PAGE])
        if request.path == "/api/v1/nodes":
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        return web.Response(status=404)

    async def run() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)  # noqa: T201 - read by the figure
        await asyncio.Event().wait()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def as_seldom_collected_as_in_the_app() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, "-m", "tests.bench.bench_kubernetes"], stdout=subprocess.PIPE)
    assert server.stdout is not None
    yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    server.kill()
    server.wait()


async def _longest_stall(longest: list[float]) -> None:
    """Measure by how much the loop is late."""
    while True:
        before = perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        longest.append(perf_counter() - before - TICK_SECONDS)


async def test_ten_thousand_pods(figure: Figures, address: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    context = {"name": "fake", "context": {"cluster": "fake", "user": "ann"}}
    clusters = [{"name": "fake", "cluster": {"server": address}}]
    users = [{"name": "ann", "user": {"token": "t"}}]
    file.write_text(json.dumps({"clusters": clusters, "users": users, "contexts": [context]}))
    clock, took, stalls = SystemClock(), [], []
    for _ in range(ROUNDS):
        backend = KubernetesBackend(
            "bench", lambda: Api(Connection("fake", (str(file),), clock.now)), "team-0", clock, Random(1), "ann"
        )
        longest: list[float] = []
        beside = Tasks()
        beside.start(_longest_stall(longest), "the lateness of the loop")
        before = perf_counter()
        watch = backend.watch_jobs()
        delta = await anext(aiter(watch))
        drawn = Context(now=clock.now(), zone=UTC, user="ann")
        shown = JobRows(lambda drawn=drawn: drawn)
        shown.folds.replace_all(delta.changed)
        cells = [shown.cells(row_id, COLUMNS) for row_id in shown.order[:LINES]]
        took.append(perf_counter() - before)
        stalls.append(max(longest))
        await beside.cancel_all()
        assert (len(cells), len(delta.changed)) == (LINES, PODS)
        await backend.close()
    figure("PF-20", "10 000 pods listed and drawn", median(took))
    figure("PF-20", "longest stall meanwhile", median(stalls) * 1000)


if __name__ == "__main__":
    serve()
