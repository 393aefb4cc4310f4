"""A real Kubernetes cluster as a member of a fleet: orders in the objects' names, over a link that is cut."""

from __future__ import annotations

import pytest

from cockpit.model.fleetorder import Order
from cockpit.model.job import JobState
from cockpit.model.spec import JobSpec, NodeSpec
from tests.real.fleet_member import fleet_of
from tests.real.kubernetes.cluster import ADMIN, RealKubernetes
from tests.real.kubernetes.test_backend import cockpit_of
from tests.runtime.remote_world import ANSWER, FLEET_ID, LATE, REQUEST

pytestmark = [pytest.mark.real, pytest.mark.real_kubernetes, pytest.mark.req("FL-04", "FL-08")]
SMALL = (NodeSpec(cpus=1, memory_mib=64),)


@pytest.mark.parametrize("loss", [REQUEST, ANSWER, LATE])
async def test_no_pod_is_made_twice_whatever_call_is_lost(cluster: RealKubernetes, namespace: str, loss: str) -> None:
    async with cockpit_of(cluster, ADMIN, namespace) as backend, fleet_of("west", backend) as fleet:
        for operation in ("parts", "nodes", "submit", "release", "cancel"):
            fleet.cut_first(operation, loss)
            spec = JobSpec(name=f"{operation}-{loss}", command="sleep 600", output="/out", image="img:1", specs=SMALL)
            job = await fleet.submit(spec)
            await fleet.until(lambda job=job: fleet.job(job).state is JobState.RUNNING)
            name = Order(FLEET_ID, job, 1).named(spec.name)
            pods = cluster.admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
            made = [each["metadata"]["name"] for each in pods if each["metadata"]["name"].startswith(name)]
            assert len(made) == 1, operation
            await fleet.cancel(job)
            await fleet.until(lambda job=job: fleet.job(job).ended)
            assert fleet.job(job).state is JobState.STOPPED
            jobs = cluster.admin.get(f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
            assert [each["metadata"]["name"] for each in jobs if "deletionTimestamp" not in each["metadata"]] == []
