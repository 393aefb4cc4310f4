"""The page of a job on the host of a Kubernetes fleet: its keys reach the member that runs a replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cockpit.runtime.clock import SystemClock
from cockpit.tui.opening import Session
from tests.backends.kubernetes.conftest import answers, open_fake
from tests.backends.kubernetes.fleet_objects import (
    ACK,
    BINDINGS,
    CLUSTERS,
    JOBS,
    POLICIES,
    PROXY,
    a_binding,
    a_member,
    a_policy,
    reported,
    serve_fleet,
)
from tests.backends.kubernetes.test_backend import PODS, a_job, a_pod
from tests.backends.kubernetes.test_events import EVENTS
from tests.doubles.kubernetes_api import FakeApi, Reply
from tests.tui.driver import at_the_cockpit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.req("FL-09", "KU-11", "UI-10")
RUNNING = {"conditions": [{"type": "Running", "status": "True"}]}
STATE = {"running": {"startedAt": "2026-03-01T09:00:00Z"}}


@pytest.fixture
async def member() -> AsyncIterator[FakeApi]:
    """The member cn-1, with a job of two pods."""
    async with FakeApi() as made:
        made.kinds = {"/apis/kubeflow.org/v1": ("pytorchjobs",), "/apis/batch/v1": ("jobs",)}
        answers(made, "POST /apis/authentication.k8s.io", {"status": {"userInfo": {"username": "alice"}}})
        answers(made, "POST /apis/authorization.k8s.io", {"status": {"allowed": True}})
        job = made.create(JOBS, two_replicas(status=RUNNING))
        for name in ("train-master-0", "train-worker-0"):
            status = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "state": STATE}]}
            made.create(PODS, a_pod(job, name, spec={"nodeName": "n1"}, status=status))
        yield made


def two_replicas(**changes: Any) -> dict[str, Any]:
    job = a_job(**changes)
    job["spec"]["pytorchReplicaSpecs"]["Worker"] = job["spec"]["pytorchReplicaSpecs"]["Master"]
    return job


async def test_the_log_of_each_replica_and_the_events_of_its_member_are_a_key_away(
    member: FakeApi, tmp_path: Path
) -> None:
    async with FakeApi() as host:
        backend = open_fake(host, tmp_path)
        serve_fleet(host)
        host.create(CLUSTERS, a_member("cn-1"))
        host.behind[PROXY.format("cn-1")] = member
        host.create(JOBS, two_replicas(status=RUNNING))
        host.create(POLICIES.format(ACK), a_policy())
        host.create(BINDINGS, a_binding("cn-1", status={"aggregatedStatus": [reported("cn-1", "Running")]}))
        for pod, line in (("train-master-0", "loss of the master"), ("train-worker-0", "loss of the worker")):
            log = Reply(body=f"2026-03-01T09:00:00Z {line}\n".encode())
            for _ in range(20):  # it is read again and again
                member.answer_next(f"GET /api/v1/namespaces/team-a/pods/{pod}/log", log)
        about = {"kind": "PyTorchJob", "name": "train", "uid": member.object(f"{JOBS}/train")["metadata"]["uid"]}
        event = {"reason": "PodsReady", "message": "both pods run", "lastTimestamp": "2026-03-01T09:00:00Z"}
        member.create(EVENTS, {"metadata": {"name": "train.1"}, "involvedObject": about, **event})
        session = Session(
            backend=backend, now=SystemClock().now, user="alice", read_jobs=lambda *_: [], close=backend.close
        )
        async with at_the_cockpit(session, (120, 40)) as cockpit:
            await cockpit.sees("train", "cn-1", "● running").press("l").sees("loss of the master")
            await cockpit.press("i").sees("loss of the worker")
            await cockpit.press("]").sees("the fleet's events").misses("both pods run")
            await cockpit.press("i").sees("events of cn-1", "both pods run")
