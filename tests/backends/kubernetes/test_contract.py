"""The contract of all backends over the tests' own API server."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.spec import JobSpec, Mode
from tests.backends.contract import BackendContract
from tests.doubles.kubernetes_api import FakeApi


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    status = {"allocatable": {"cpu": "96", "memory": "1000Gi"}, "conditions": [{"type": "Ready", "status": "True"}]}
    server.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "n1"}, "status": status})
    server.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
    return backend


@pytest.mark.req("UI-10")
class TestContract(BackendContract):
    """Of a cluster on which alice may do everything."""

    counts_jobs = counts_factors = False

    def prepared(self, spec: JobSpec) -> JobSpec:
        return replace(spec, name=spec.name.replace(" ", "-"), image="img:1", mode=Mode.PYTORCH)

    def waiting(self, name: str) -> JobSpec:
        # Kubernetes starts no job later; no controller of this server creates its pods.
        return self.held(name)
