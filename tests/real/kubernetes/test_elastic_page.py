"""The commands of docs/elastic.md for an elastic job on spot nodes, run one by one against a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.elastic_page import ON_KUBERNETES, SUBMITTED
from tests.e2e.cockpit_user import CockpitUser
from tests.real.kubernetes.cluster import ADMIN
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.elastic_operator import DEFINITIONS, GROUP, ElasticOperator
from tests.real.kubernetes.pods import create_pod, fake_pod, wait_for_phase
from tests.real.kubernetes.test_dialects import grant_custom_kinds
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes]
NAME = "fine-tuning-elastic"
PLATFORM = "arena-system"


@pytest.fixture
def spot_cluster() -> Iterator[RealKubernetes]:
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    with running_cluster(nodes=2) as made:
        made.admin.apply(*DEFINITIONS)
        grant_custom_kinds(made)
        wait_until("the schema is not published", lambda: made.admin.exists(f"/openapi/v3{GROUP}"))
        made.admin.create("/api/v1/namespaces", {"metadata": {"name": PLATFORM}})
        account = f"/api/v1/namespaces/{PLATFORM}/serviceaccounts/default"
        wait_until(f"no service account in {PLATFORM}", lambda: made.admin.exists(account))
        made.admin.merge("/api/v1/nodes/gpu-0000", {"metadata": {"labels": {"instance_type": "spot-launcher"}}})
        yield made


def start_supervisor(cluster: RealKubernetes) -> None:
    pod = fake_pod("elastic-job-supervisor-0")
    pod["metadata"]["labels"] = {"app": "elastic-job-supervisor"}
    wait_for_phase(cluster.admin, create_pod(cluster.admin, PLATFORM, pod), "Running")


@pytest.mark.req("KU-10", "KU-07", "EL-08")
def test_every_command_of_the_page_does_what_it_says(spot_cluster: RealKubernetes, tmp_path: Path) -> None:
    admin, steps = spot_cluster.admin, iter(ON_KUBERNETES)
    with spot_cluster.namespace() as namespace, ElasticOperator(spot_cluster, namespace).run():
        user = CockpitUser(tmp_path)
        user.env["KUBECONFIG"] = str(spot_cluster.kubeconfig(ADMIN))
        namespaces = f'namespaces = ["{namespace}", "{PLATFORM}"]'
        user.configure("config.toml", f'[clusters.prod]\naddress = "kube:real"\n{namespaces}\n')
        user.write("tune.sh", SUBMITTED)
        own = f"{GROUP}/namespaces/{namespace}/trainingjobs/{NAME}"

        def step(*expected: str) -> str:
            """Run the next command of the page, which begins so."""
            words = next(steps)
            assert words[: len(expected)] == list(expected)
            return user.ok("-c", "prod", *words)

        def status() -> dict[str, Any]:
            return dict(admin.get(own).get("status", {}))

        def has_workers(count: int) -> bool:
            return status().get("phase") == "Running" and len(status()["targetWorkers"]) == count

        assert "elastic-job-supervisor has no pods in arena-system" in user.ok("-c", "prod", "overview")
        start_supervisor(spot_cluster)
        assert "elastic-job-supervisor" not in step("overview")
        assert "submitted fine-tuning-elastic" in step("submit", "tune.sh")
        made = admin.get(own)
        notes = made["metadata"]["annotations"]
        assert notes["job-supervisor.kube-ai.io/spot-instance"] == "true"
        assert notes["job-supervisor.kube-ai.io/max-wait-time"] == "600"
        worker = made["spec"]["etReplicaSpecs"]["worker"]
        assert (worker["replicas"], worker["minReplicas"], worker["maxReplicas"]) == (8, 1, 128)
        wait_until("its eight workers do not run", lambda: has_workers(8))

        assert "8 (1–128)" in step("jobs")
        page = step("job", NAME)
        assert "asks for      8 workers" in page
        assert "workers       8, may have 1 to 128" in page
        assert "fine-tuning-elastic-launcher" in step("job", NAME, "--replicas")
        (row,) = json.loads(step("job", NAME, "-o", "json"))["rows"]
        assert row["workers"] == {"workers": 8, "min_workers": 1, "max_workers": 128}

        assert "10 workers" in step("scale", NAME, "10")
        wait_until("it does not grow", lambda: has_workers(10))
        assert "6 workers" in step("scale", NAME, "-4")
        wait_until("it does not shrink", lambda: has_workers(6))

        step("suspend", NAME)
        assert status()["phase"] == "Suspended"
        assert "held by admin" in user.ok("-c", "prod", "jobs")
        step("resume", NAME)
        wait_until("it does not resume", lambda: has_workers(8))

        # The job supervisor finds too few nodes for it.
        admin.merge(own, {"metadata": {"annotations": {"job-supervisor.kube-ai.io/job-suspended": "true"}}})
        wait_until("it is not suspended", lambda: status()["phase"] == "Suspended")
        assert "is waiting resource timeout" in step("explain", NAME)
        admin.merge(own, {"metadata": {"annotations": {"job-supervisor.kube-ai.io/job-status": "timeout"}}})
        ended = user.ok("-c", "prod", "jobs", "--all")
        assert "had too few workers for longer than it waits" in ended
        step("requeue", NAME, "--yes")
        wait_until("it does not begin again", lambda: has_workers(8))

        step("cancel", NAME, "--yes")
        left = (own, f"/api/v1/namespaces/{namespace}/secrets/{NAME}")
        wait_until("something of it is left", lambda: not any(map(admin.exists, left)))
        assert not list(steps)
