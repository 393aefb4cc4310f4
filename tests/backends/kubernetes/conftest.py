"""The tests' own API server, and a connection to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cockpit.backends.kubernetes import session
from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.model.ids import Millis
from cockpit.runtime.clock import SystemClock
from tests.doubles.kubernetes_api import FakeApi, Reply


def write_kubeconfig(folder: Path, address: str, user: str = "{token: secret}", name: str = "fake") -> Path:
    """Write a kubeconfig with one context, and return its path."""
    file = folder / f"kubeconfig-{name}"
    file.write_text(
        f"clusters: [{{name: {name}, cluster: {{server: '{address}'}}}}]\n"
        f"users: [{{name: ann, user: {user}}}]\n"
        f"contexts: [{{name: {name}, context: {{cluster: {name}, user: ann, namespace: team-a}}}}]\n"
        f"current-context: {name}\n"
    )
    return file


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with FakeApi() as server:
        yield server


def answers(server: FakeApi, request: str, body: dict[str, Any]) -> None:
    """Give this answer to the next request that begins so."""
    server.answer_next(request, Reply(body=json.dumps(body).encode()))


def open_fake(server: FakeApi, folder: Path) -> KubernetesBackend:
    """Open a cluster of PyTorchJobs and Jobs, where the user alice may do everything."""
    answers(server, "POST /apis/authentication.k8s.io", {"status": {"userInfo": {"username": "alice"}}})
    answers(server, "POST /apis/authorization.k8s.io", {"status": {"allowed": True}})
    server.kinds = {"/apis/kubeflow.org/v1": ("pytorchjobs",), "/apis/batch/v1": ("jobs",)}
    file = write_kubeconfig(folder, server.address)

    def connect() -> Api:
        return Api(Connection("fake", (str(file),), lambda: Millis(0)))

    return KubernetesBackend("fake", connect, "team-a", SystemClock(), Random(1), "ann")


@pytest.fixture
async def backend(server: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubernetesBackend]:
    """The cluster of `open_fake`, whose changes are shown at once."""
    monkeypatch.setattr(session, "COALESCE_SECONDS", 0.0)
    backend = open_fake(server, tmp_path)
    yield backend
    await backend.close()


class Waits:
    """Stands in for sleeping, and remembers for how long."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
async def api(server: FakeApi, tmp_path: Path, waits: Waits) -> AsyncIterator[Api]:
    connection = Connection("fake", (str(write_kubeconfig(tmp_path, server.address)),), lambda: Millis(0))
    api = Api(connection, waits)
    yield api
    await api.close()


class NoApi:
    """An API server that is never asked: the tests put the objects in themselves."""


@pytest.fixture
def inventory() -> Inventory:
    return Inventory(NoApi(), "default", Random(1), lambda: None)  # type: ignore[arg-type] - it is never asked
