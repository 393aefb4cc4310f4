"""An API server with very many pods in memory, some of which change: `python -m tests.bench.kubernetes_server CHANGES`.

CHANGES is how many pods change each second. It prints its address. Requests cost it little but their bytes, so that a
figure is the client's.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PODS, PAGE = 10_000, 500
CARDS = 8
NODES = PODS // CARDS
BURSTS = 20
"""How often in a second changes are sent."""
STAMP = "2026-03-01T09:00:00Z"
FIRST_VERSION = 99_999


def a_pod(number: int, version: int, *, waits: bool = False) -> dict[str, Any]:
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
    state = {"waiting": {"reason": "ContainerCreating"}} if waits else {"running": {"startedAt": STAMP}}
    return {
        "metadata": {
            "name": f"train-{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"5a0c9a62-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": STAMP,
            "labels": {f"label-{each}": "value" for each in range(8)},
            "managedFields": managed,
        },
        "spec": {
            "containers": containers,
            "nodeName": node_name(number // CARDS),
            "schedulerName": "default-scheduler",
        },
        "status": {
            "phase": "Pending" if waits else "Running",
            "conditions": conditions,
            "startTime": STAMP,
            "containerStatuses": [{"name": "main", "ready": not waits, "state": state}],
        },
    }


def a_node(number: int, version: int, heartbeat: int = 0) -> dict[str, Any]:
    """A node with as much beside what counts as a real one has; each heartbeat is a change."""
    resources = {"cpu": "128", "memory": "1024Gi", "pods": "110", "nvidia.com/gpu": str(CARDS)}
    beat = f"2026-03-01T09:{heartbeat // 60 % 60:02}:{heartbeat % 60:02}Z"
    conditions = [
        {"type": kind, "status": str(kind == "Ready"), "lastHeartbeatTime": beat, "lastTransitionTime": STAMP}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    labels = {"kubernetes.io/hostname": node_name(number), "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    images = [{"names": [f"registry.example/{each}:1"], "sizeBytes": 1 << 30} for each in range(20)]
    return {
        "metadata": {
            "name": node_name(number),
            "uid": f"6b0c9a62-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": STAMP,
            "labels": labels,
        },
        "spec": {},
        "status": {"allocatable": resources, "capacity": resources, "conditions": conditions, "images": images},
    }


def node_name(number: int) -> str:
    return f"n{number}"


class Kind:
    """One kind of object: its pages, and the lines of its changes, which all watches are sent."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.pages = []
        self.watches: list[asyncio.Queue[bytes]] = []
        for first in range(0, len(items), PAGE):
            after = str(first + PAGE) if first + PAGE < len(items) else ""
            metadata = {"resourceVersion": str(FIRST_VERSION), "continue": after}
            self.pages.append(json.dumps({"metadata": metadata, "items": items[first : first + PAGE]}).encode())

    def send(self, changed: list[dict[str, Any]]) -> None:
        lines = b"".join(json.dumps({"type": "MODIFIED", "object": each}).encode() + b"\n" for each in changed)
        for watch in self.watches:
            watch.put_nowait(lines)


async def _change(pods: Kind, nodes: Kind, each_second: int) -> None:
    """Change pods at random, and let nodes send a heartbeat every five minutes."""
    chance, version, beats = Random(7), FIRST_VERSION, 0
    while each_second:
        await asyncio.sleep(1 / BURSTS)
        changed = []
        for _ in range(each_second // BURSTS):
            version += 1
            changed.append(a_pod(chance.randrange(PODS), version, waits=chance.random() < 0.5))
        pods.send(changed)
        beats += 1
        if beats % (300 * BURSTS // NODES) == 0:
            version += 1
            nodes.send([a_node(chance.randrange(NODES), version, beats)])


async def _serve(each_second: int) -> None:
    from aiohttp import web

    kinds = {
        "/api/v1/pods": Kind([a_pod(number, number) for number in range(PODS)]),
        "/api/v1/nodes": Kind([a_node(number, number) for number in range(NODES)]),
    }

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        if request.method == "POST":
            return web.json_response({"status": {"allowed": True, "userInfo": {"username": "ann"}}})
        kind = kinds.get(request.path)
        if kind is None:
            return web.Response(status=404)
        if not request.query.get("watch"):
            return web.Response(body=kind.pages[int(request.query.get("continue") or 0) // PAGE])
        response, lines = web.StreamResponse(), asyncio.Queue[bytes]()
        await response.prepare(request)
        kind.watches.append(lines)
        try:
            while True:
                await response.write(await lines.get())
        finally:
            kind.watches.remove(lines)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)  # noqa: T201 - read by the figure
    await _change(kinds["/api/v1/pods"], kinds["/api/v1/nodes"], each_second)
    await asyncio.Event().wait()


@contextmanager
def many_pods(folder: Path, *, changes: int = 0) -> Iterator[Path]:
    """Run the server in a process of its own; a kubeconfig whose context `fake` leads to it."""
    command = [sys.executable, "-m", "tests.bench.kubernetes_server", str(changes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            file = folder / "kubeconfig"
            context = {"name": "fake", "context": {"cluster": "fake", "user": "ann", "namespace": "team-0"}}
            clusters = [{"name": "fake", "cluster": {"server": address}}]
            users = [{"name": "ann", "user": {"token": "t"}}]
            file.write_text(json.dumps({"clusters": clusters, "users": users, "contexts": [context]}))
            yield file
        finally:
            server.kill()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
