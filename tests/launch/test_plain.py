"""What plain processes do not have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.checks import needs_container
from cockpit.model.resilience import Elastic
from cockpit.model.spec import JobSpec

JOB = JobSpec(name="train", command="true", output="/out")


def test_a_job_of_one_replica_with_the_machines_root_runs_without_a_container() -> None:
    assert needs_container(JOB) == []


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("nodes", replace(JOB, nodes=2)),
        ("nodes", replace(JOB, parameter_servers=1)),
        ("nodes", replace(JOB, elastic=Elastic(workers=1, max_workers=2))),
        ("image", replace(JOB, image="dir:/roots/a")),
        ("image", replace(JOB, image="torch", image_found="tar:/roots/a.tar")),
        ("staging", replace(JOB, staging=True)),
    ],
)
@pytest.mark.req("LA-50")
def test_fields_that_need_a_container_are_reported(field: str, spec: JobSpec) -> None:
    (said,) = needs_container(spec)
    assert said.startswith(f"{field}: ")
