"""Elastic quotas of Koordinator and scheduler-plugins as a tree, and the test of a job against it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.elastic_quotas import ElasticQuotas, quota_reason
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quota_answer import QuotaAnswer, QuotaBook, asked
from cockpit.backends.kubernetes.mapping.rows import reason_of
from cockpit.backends.kubernetes.objects.elastic_quota import ElasticQuota
from cockpit.backends.kubernetes.resources import ELASTIC_QUOTAS, KOORDINATOR_QUOTAS, Resource
from cockpit.model.ids import JobId
from cockpit.model.pod_reasons import QueueWaits, Unschedulable
from cockpit.model.reasons import QuotaFull
from tests.backends.kubernetes.objects import GPU, a_job, a_pod, a_pytorch_job, a_running_pod, merged

PREFIX = "quota.scheduling.koordinator.sh"


def a_quota(
    name: str,
    parent: str = "",
    *,
    most: int | None = None,
    used: int = 0,
    namespace: str = "kube-system",
    kind: Resource = KOORDINATOR_QUOTAS,
    **changes: Any,
) -> tuple[Resource, ElasticQuota]:
    labels = {f"{PREFIX}/parent": parent} if parent else {}
    bounds = {} if most is None else {"max": {GPU: most, "cpu": "96"}, "min": {GPU: 4}}
    base = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels},
        "spec": bounds,
        "status": {"used": {GPU: used}},
    }
    return kind, msgspec.convert(merged(base, changes), ElasticQuota, strict=False)


TREE = (
    a_quota("vision", "research", most=16, used=0),
    a_quota("research", most=32, used=24),
    a_quota("nlp", "research", most=24, used=24, metadata={"annotations": {f"{PREFIX}/namespaces": '["nlp-dev"]'}}),
    a_quota("ops", most=8),
)


def a_waiting_job(quota: str = "", namespace: str = "team-a") -> KubeJob:
    labels = {f"{PREFIX}/name": quota} if quota else {}
    metadata = {"namespace": namespace, "labels": labels}
    return a_job(workload=a_pytorch_job(1, metadata=metadata))


@pytest.mark.req("KU-04")
def test_the_parent_labels_make_a_tree() -> None:
    rows = list(ElasticQuotas(TREE).rows([a_waiting_job("nlp"), a_waiting_job("vision")]))
    assert [(row.path, row.level, row.waiting, row.running) for row in rows] == [
        ("ops", 0, 0, 0),
        ("research", 0, 2, 0),
        ("research/nlp", 1, 1, 0),
        ("research/vision", 1, 1, 0),
    ]
    nlp = rows[2]
    assert (nlp.min, nlp.max, nlp.used) == (
        {"gres/gpu": 4000},
        {"gres/gpu": 24_000, "cpu": 96_000},
        {"gres/gpu": 24_000},
    )
    assert nlp.projects == ("nlp-dev",)


@pytest.mark.req("KU-04")
def test_parents_in_a_circle_and_unknown_ones_lose_no_quota() -> None:
    odd = (a_quota("a", "b"), a_quota("b", "a"), a_quota("c", "gone"), a_quota("d", "a"), a_quota("e", "e"))
    assert sorted(ElasticQuotas(odd).places) == ["a", "b", "c", "d", "e"]


@pytest.mark.req("KU-04")
def test_quotas_of_both_groups_are_told_apart() -> None:
    quotas = ElasticQuotas((*TREE, a_quota("nlp", most=8, namespace="team-b", kind=ELASTIC_QUOTAS)))
    assert [path for path in quotas.places if path.endswith("nlp")] == ["research/nlp", "team-b/nlp"]
    assert quotas.of(a_waiting_job("nlp")) == quotas.places["research/nlp"]
    assert quotas.of(a_waiting_job(namespace="team-b")) == quotas.places["team-b/nlp"]


@pytest.mark.req("KU-04")
@pytest.mark.parametrize(
    ("named", "namespace", "path"),
    [
        ("vision", "team-a", "research/vision"),
        ("", "ops", "ops"),
        ("", "nlp-dev", "research/nlp"),
        ("", "team-a", "koordinator-default-quota"),
        ("gone", "team-a", "koordinator-default-quota"),
    ],
)
def test_a_job_counts_to_the_quota_that_it_names_else_to_its_namespaces(named: str, namespace: str, path: str) -> None:
    quotas = ElasticQuotas((*TREE, a_quota("koordinator-default-quota")))
    found = quotas.of(a_waiting_job(named, namespace))
    assert found is not None
    assert found.path == path


def book(*quotas: tuple[Resource, ElasticQuota]) -> QuotaBook:
    return QuotaBook(ElasticQuotas(quotas or TREE), {})


@pytest.mark.req("KU-05")
def test_the_request_is_tested_up_the_tree() -> None:
    # Own quota: 24 of 24 cards are in use, and the two pods ask for 16.
    own = book().answer(a_waiting_job("nlp"), {})
    assert own == QuotaAnswer(QuotaFull("research/nlp", "gres/gpu", 24, 24, 16), ())
    # Own quota has 16 free, the one above 8.
    above = book().answer(a_waiting_job("vision"), {})
    assert above == QuotaAnswer(QuotaFull("research", "gres/gpu", 32, 24, 16), ())
    assert book(*TREE[:1], a_quota("research", most=40, used=24)).answer(a_waiting_job("vision"), {}) is None


@pytest.mark.req("KU-05")
def test_what_koordinator_lends_to_others_lowers_the_bound() -> None:
    runtime = {"metadata": {"annotations": {f"{PREFIX}/runtime": json.dumps({GPU: "12", "cpu": "200"})}}}
    answer = book(a_quota("vision", most=32, **runtime)).answer(a_waiting_job("vision"), {})
    assert answer is not None
    assert answer.reason == QuotaFull("vision", "gres/gpu", 12, 0, 16)
    broken = {"metadata": {"annotations": {f"{PREFIX}/runtime": "{", f"{PREFIX}/namespaces": "[1"}}}
    assert book(a_quota("vision", most=32, **broken)).answer(a_waiting_job("vision"), {}) is None


@pytest.mark.req("KU-05")
def test_who_holds_a_quota_is_told_largest_first() -> None:
    label = {"metadata": {"labels": {f"{PREFIX}/name": "nlp"}}}
    small = a_job(a_running_pod("s", **label))
    large = a_job(a_running_pod("l-0", **label), a_running_pod("l-1", **label), workload=a_pytorch_job(1, **label))
    other = a_job(a_running_pod("o", metadata={"labels": {f"{PREFIX}/name": "ops"}}))
    jobs = {JobId(1): small, JobId(2): large, JobId(3): other, JobId(4): a_waiting_job("nlp")}
    answer = book().answer(jobs[JobId(4)], jobs)
    assert answer is not None
    assert answer.holders == (JobId(2), JobId(1))
    # Of a quota above, the jobs below it hold it.
    above = book().answer(a_waiting_job("vision"), jobs)
    assert above is not None
    assert above.holders == (JobId(2), JobId(1))


@pytest.mark.req("KU-05")
def test_a_job_asks_for_what_it_lacks() -> None:
    placed = a_running_pod("a")
    assert asked(a_job(placed, a_pod("b"), workload=a_pytorch_job(1)))["gres/gpu"] == 8000
    assert asked(a_job(workload=a_pytorch_job(3)))["gres/gpu"] == 32_000
    assert asked(a_job(a_pod("a")))["gres/gpu"] == 8000


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("message", "queue"),
    [
        (
            (
                "0/21 nodes are available: Insufficient quotas, quotaName: nlp, runtime: {nvidia.com/gpu: 24}, used: "
                "{nvidia.com/gpu: 24}, pod's request: {nvidia.com/gpu: 8}, exceedDimensions: [nvidia.com/gpu]."
            ),
            "nlp",
        ),
        ("0/2 nodes are available: Insufficient quotas, quotaNameTopo: [nlp research], runtime: x", "nlp"),
        ("0/2 nodes are available: Pod a/b is rejected in PreFilter because ElasticQuota a is more than Max.", "a"),
        ("Pod a/b is rejected in PreFilter because total ElasticQuota used is more than min", "team-a"),
    ],
)
def test_the_schedulers_refusal_by_a_quota_is_no_matter_of_nodes(message: str, queue: str) -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    job = a_job(a_pod(status={"conditions": conditions}))
    found = reason_of(job)
    assert isinstance(found, QueueWaits)
    assert (found.manager, found.queue, found.code) == ("elastic quota", queue, "Quota")
    assert found.message in message


@pytest.mark.req("KU-05")
def test_what_a_scheduler_tried_after_a_quota_refused_a_pod_is_left_out() -> None:
    """As scheduler-plugins 0.35.4 with Kubernetes 1.35.6 writes it, one part for each node of the cluster."""
    message = (
        "0/21 nodes are available: Pod team-a/b is rejected in PreFilter because total ElasticQuota used is more than "
        "min. no new claims to deallocate, PodGroup team-a/wide gets rejected due to Pod b is unschedulable even after "
        "PostFilter, 0/21 nodes are available: 1 No victims found on node gpu-0000 for preemptor pod b, 1 No victims "
        "found on node gpu-0001 for preemptor pod b."
    )
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    found = reason_of(a_job(a_pod(status={"conditions": conditions})))
    assert found == QueueWaits("elastic quota", "team-a", "Quota", "total ElasticQuota used is more than min")


@pytest.mark.req("KU-05")
def test_other_words_with_quota_in_them_are_left_to_the_scheduler() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "my-quota is odd"}]
    job = a_job(a_pod(status={"conditions": conditions}))
    assert quota_reason(job) is None
    assert isinstance(reason_of(job), Unschedulable)
