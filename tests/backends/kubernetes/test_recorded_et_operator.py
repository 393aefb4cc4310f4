"""What the elastic training operator itself wrote on a real API server, as the cockpit shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.model.job import JobState
from cockpit.model.resilience import ScalePhase, Scaling
from cockpit.present.workers import scaling_words, workers_fact, workers_now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.backends.kubernetes.backend import KubernetesBackend
    from cockpit.model.jobdetail import JobDetail
    from tests.doubles.kubernetes_api import FakeApi

Stage = dict[str, list[dict[str, Any]]]
"""The objects by their collections."""
STAGES: Mapping[str, Stage] = json.loads((Path(__file__).parent / "data/et_operator_96806fb.json").read_text())[
    "stages"
]
pytestmark = pytest.mark.req("KU-10", "KU-03")


@pytest.fixture
def backend(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    server.kinds["/apis/kai.alibabacloud.com/v1alpha1"] = ("trainingjobs", "scaleins", "scaleouts")
    return backend


async def shown(backend: KubernetesBackend, server: FakeApi, stage: str) -> JobDetail:
    # The server gives objects uids of its own; the job comes first.
    uids: dict[str, str] = {}
    for collection, objects in STAGES[stage].items():
        for each in objects:
            owners = [{**owner, "uid": uids[owner["uid"]]} for owner in each["metadata"].get("ownerReferences", ())]
            made = server.create(collection, {**each, "metadata": {**each["metadata"], "ownerReferences": owners}})
            uids[each["metadata"]["uid"]] = made["metadata"]["uid"]
    (row,) = await backend.jobs(ended=True)
    return await backend.job(row.id)


async def test_a_change_that_is_under_way_is_shown_with_what_it_leads_to(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    detail = await shown(backend, server, "scaling")
    assert (detail.row.state, detail.row.workers) == (JobState.RUNNING, (1, 60, 64))
    assert detail.scaling == Scaling(name="ScaleOut train-1", change=58, phase=ScalePhase.RUNNING)
    # The first of the new workers runs, others wait for nodes.
    assert workers_now(detail.row) == "3 (1–64)"
    assert workers_fact(detail) == (
        "3, asked for 60, may have 1 to 64; 58 more by ScaleOut train-1, which waits for them to run"
    )


async def test_a_change_that_has_failed_is_shown_with_its_reason(backend: KubernetesBackend, server: FakeApi) -> None:
    detail = await shown(backend, server, "scale_failed")
    assert (detail.row.state, detail.row.workers) == (JobState.RUNNING, (1, 2, 64))
    assert scaling_words(detail) == (
        "58 more by ScaleOut train-1 failed: scaleout job ScaleOut:elastic/train-1 execution timeout"
    )


async def test_a_suspended_job_has_no_workers_and_lacks_them_until_its_longest_wait_ends(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    detail = await shown(backend, server, "suspended")
    assert (detail.row.state, detail.row.placed_on) == (JobState.SUSPENDED, ())
    assert detail.row.waits_until is not None
    # It begins again with the number of its spec, and its last change has succeeded.
    assert (detail.row.workers, detail.scaling) == ((1, 2, 64), None)
    spec = detail.job.spec
    assert (spec.nodes, spec.mode, spec.has_launcher) == (2, "horovod", True)
    assert spec.elastic is not None
    assert (spec.elastic.job_restart_policy, spec.elastic.backoff_limit) == ("OnFailure", 3)
    assert (spec.elastic.worker_restart_policy, spec.elastic.max_wait_seconds) == ("Always", 600)
