"""How often an open cockpit asks the API server."""

from __future__ import annotations

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from tests.backends.kubernetes.objects import a_template
from tests.doubles.kubernetes_api import FakeApi

PODS = "/api/v1/namespaces/team-a/pods"


async def look(backend: KubernetesBackend) -> None:
    """Ask what the application asks each second: the header, views, starts, and the job under the cursor."""
    await backend.overview()
    await backend.nodes()
    # A view that the cluster has nothing for is not asked for, either.
    if backend.capabilities.has("queues"):
        await backend.queues()
    await backend.priorities()
    rows = await backend.jobs()
    await backend.starts([row.id for row in rows])
    for row in rows:
        await backend.job(row.id)


@pytest.mark.req("PF-20", "KU-02")
async def test_a_screen_that_is_shown_asks_the_server_nothing_each_second(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    waits = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    ]
    pod = {"kind": "Pod", "metadata": {"name": "train"}, **a_template(), "status": {"conditions": waits}}
    server.create(PODS, pod)
    server.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "n1"}, "status": {}})
    await look(backend)
    first = list(server.requests)
    for _ in range(3):
        await look(backend)
    # The watches may only begin now.
    later = [each for each in server.requests[len(first) :] if "watch=true" not in each]
    assert later == []
