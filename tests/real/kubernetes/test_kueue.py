"""What cockpit says about jobs of a real Kueue manager, and how often its rules of admission foretell the manager's.

The manager is no package of the tests: `COCKPIT_KUEUE_MANAGER` names its program, `COCKPIT_KUEUE_MANIFESTS` the folder
with its resource definitions and webhooks (`config/components` of Kueue's repository).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, admission_state
from cockpit.errors import RequestRefused
from cockpit.model.forecast import NoBound
from cockpit.model.job import JobState
from cockpit.model.pod_reasons import FlavorObstacle, QueueWaits
from cockpit.model.reasons import never_starts
from cockpit.model.spec import NodeSpec
from tests.builders import a_spec
from tests.real.kubernetes.cluster import ALICE
from tests.real.kubernetes.conftest import running_cluster
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.kueue import (
    API,
    GPU,
    GROUP,
    MANAGER,
    MANIFESTS,
    cluster_queue,
    cohort,
    flavor,
    gpu_job,
    grant_kueue,
    is_admitted,
    local_queue,
    priority_class,
    start_kueue,
    workloads,
)
from tests.real.kubernetes.kueue_answers import Measurement, decoded, table
from tests.real.kubernetes.test_backend import cockpit_of, until
from tools.kubernetes_programs import NODELET, SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.forecast import Outlook
    from cockpit.model.jobrow import JobRow
    from tests.real.kubernetes.cluster import RealKubernetes

pytestmark = [
    pytest.mark.real,
    pytest.mark.real_kubernetes,
    pytest.mark.skipif(not (MANAGER and MANIFESTS), reason="COCKPIT_KUEUE_MANAGER names no manager of Kueue"),
]
SITUATIONS = int(os.environ.get("COCKPIT_KUEUE_SITUATIONS", "12"))
SEED = int(os.environ.get("COCKPIT_KUEUE_SEED", "1"))
REPORT = os.environ.get("COCKPIT_KUEUE_REPORT", "")
"""The file for the table of a measurement, and for each decision that was not foretold; empty: none."""
JOBS = "/apis/batch/v1/namespaces/{}/jobs"


@pytest.fixture(scope="module")
def kueue() -> Iterator[RealKubernetes]:
    """A cluster of its own, whose Jobs Kueue admits."""
    if not (SERVER.is_built() and NODELET.is_built()):
        pytest.skip("Kubernetes is not built: `make setup-tests` says why (it needs Go)")
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    with running_cluster(nodes=4) as made:
        # By default jobs are put back whose pods are not ready for half an hour; a measurement may take longer.
        start_kueue(made, waitForPodsReady={"timeout": "24h", "blockAdmission": False})
        grant_kueue(made, ALICE)
        made.admin.apply(flavor("h100"), flavor("a100", {"model": "a100"}), priority_class("high", 100))
        yield made


@pytest.fixture
def place(kueue: RealKubernetes) -> Iterator[str]:
    with kueue.namespace() as name:
        yield name


def make_queues(kueue: RealKubernetes, place: str, *queues: dict[str, Any]) -> None:
    """Make cluster queues, each with a queue of the namespace of the same name."""
    names = [each["metadata"]["name"] for each in queues]
    kueue.admin.apply(*queues, *(local_queue(name, place, name) for name in names))
    wait_until("a queue is not active", lambda: all(_is_active(kueue, place, name) for name in names))


def _is_active(kueue: RealKubernetes, place: str, name: str) -> bool:
    found = kueue.admin.get(f"{API}/namespaces/{place}/localqueues/{name}").get("status", {}).get("conditions") or ()
    return any(each["type"] == "Active" for each in found)


def _count_cpus_and_memory(queue: dict[str, Any]) -> None:
    """Give a queue of GPUs quotas of what a job of cockpit asks for, too."""
    (group,) = queue["spec"]["resourceGroups"]
    for name, amount in (("cpu", "16"), ("memory", "64Gi")):
        group["coveredResources"].append(name)
        group["flavors"][0]["resources"].append({"name": name, "nominalQuota": amount})


def submit(kueue: RealKubernetes, place: str, job: dict[str, Any], *, admitted: bool = False) -> None:
    name = job["metadata"]["name"]
    kueue.admin.create(JOBS.format(place), job)
    if admitted:
        wait_until(f"{name} is not admitted", lambda: is_admitted(workloads(kueue.admin, place).get(name, {})))


async def explained(
    kueue: RealKubernetes, place: str, name: str, code: str, user: str = ALICE
) -> tuple[JobRow, Outlook]:
    """Wait until Kueue has this reason, and return what cockpit says."""
    async with cockpit_of(kueue, user, place) as backend:
        row = await until(backend, name, lambda row: isinstance(row.reason, QueueWaits) and row.reason.code == code)
        return row, await backend.explain(row.id)


def reason_of(outlook: Outlook) -> QueueWaits:
    assert outlook.explanation is not None
    assert isinstance(outlook.explanation.reason, QueueWaits)
    return outlook.explanation.reason


@pytest.mark.req("KU-04")
async def test_a_job_that_kueue_admits_runs(kueue: RealKubernetes, place: str) -> None:
    make_queues(kueue, place, cluster_queue("admits", {"h100": {"nominalQuota": 8}}))
    submit(kueue, place, gpu_job("train", "admits", 4, pods=2))
    async with cockpit_of(kueue, ALICE, place) as backend:
        row = await until(backend, "train", lambda row: row.state is JobState.RUNNING)
        assert (row.reason, row.card_milli, row.partitions) == (None, 8000, ("admits",))
        row = next(row for row in (await backend.queues()).rows if row.path == "admits")
        assert (row.min, row.projects) == ({"gres/gpu": 8000}, (place,))


@pytest.mark.req("KU-04", "KU-07")
async def test_a_submitted_job_waits_in_the_queue_that_its_partition_names(kueue: RealKubernetes, place: str) -> None:
    queue = cluster_queue("takes", {"h100": {"nominalQuota": 4}})
    _count_cpus_and_memory(queue)
    make_queues(kueue, place, queue)
    wanted = a_spec("first", image="img:1", specs=(NodeSpec(card_milli=4000),), partitions=("takes",))
    async with cockpit_of(kueue, ALICE, place) as backend:
        await backend.submit([wanted])
        row = await until(backend, "first", lambda row: row.state is JobState.RUNNING)
        assert (row.partitions, row.card_milli) == (("takes",), 4000)
        await backend.submit([replace(wanted, name="second")])
        row = await until(backend, "second", lambda row: isinstance(row.reason, QueueWaits))
        assert row.partitions == ("takes",)
        with pytest.raises(RequestRefused, match="no queue 'other' of Kueue; there is takes"):
            await backend.submit([replace(wanted, name="third", partitions=("other",))])


@pytest.mark.req("KU-04", "KU-05", "SC-12")
async def test_the_manager_does_what_was_predicted_of_jobs_before_they_were_submitted(
    kueue: RealKubernetes, place: str
) -> None:
    queue = cluster_queue("foretold", {"h100": {"nominalQuota": 8}}, namespaceSelector={})
    closed = cluster_queue(
        "closed", {"h100": {"nominalQuota": 8}}, namespaceSelector={"matchLabels": {"team": "somebody-else"}}
    )
    for each in (queue, closed):
        _count_cpus_and_memory(each)
    make_queues(kueue, place, queue, closed)
    spec = a_spec(
        "first", image="img:1", specs=(NodeSpec(card_milli=4000),), partitions=("foretold",), time_limit_seconds=3600
    )
    others = (
        replace(spec, name="behind", specs=(NodeSpec(card_milli=8000),)),
        replace(spec, name="huge", specs=(NodeSpec(card_milli=16_000),)),
        replace(spec, name="foreign", partitions=("closed",)),
    )
    async with cockpit_of(kueue, ALICE, place) as backend:
        (first,) = await backend.predict([spec])
        assert (first.forecast.now, first.explanation) == (True, None)
        await backend.submit([spec])
        await until(backend, "first", lambda row: row.state is JobState.RUNNING)
        behind, huge, foreign = await backend.predict(others)
        assert reason_of(behind).code == "WaitingForQuota"
        assert (behind.position, behind.forecast.likely_at is not None) == (1, True)
        assert [each.name for each in behind.named if each.job in behind.holders] == ["first"]
        assert (reason_of(huge).code, reason_of(huge).never) == ("ExceedsMaxQuota", True)
        assert (reason_of(foreign).code, reason_of(foreign).never) == ("Misconfigured", True)
        # The manager gives each of them the very reason that was predicted.
        await backend.submit(others)
        for each in (behind, huge, foreign):
            code = reason_of(each).code
            row = await until(
                backend,
                each.name,
                lambda row, code=code: isinstance(row.reason, QueueWaits) and row.reason.code == code,
            )
            assert isinstance(row.reason, QueueWaits)
            assert row.reason.never is reason_of(each).never
        (start,) = await backend.starts([next(row.id for row in await backend.jobs() if row.name == "behind")])
        assert start.at is not None
        assert behind.forecast.likely_at is not None
        # Both count on the end of the job that has the quota: within a minute, as it began in between.
        assert abs(start.at - behind.forecast.likely_at) < 60_000


@pytest.mark.req("KU-05")
async def test_a_job_that_can_never_be_admitted_is_told_so(kueue: RealKubernetes, place: str) -> None:
    make_queues(kueue, place, cluster_queue("small", {"h100": {"nominalQuota": 8}}))
    submit(kueue, place, gpu_job("huge", "small", 8, pods=3))
    _, outlook = await explained(kueue, place, "huge", "ExceedsMaxQuota")
    reason = reason_of(outlook)
    assert never_starts(reason)
    assert [(each.flavor, each.obstacle, each.most) for each in reason.flavors] == [
        ("h100", FlavorObstacle.TOO_LARGE, "8")
    ]
    # Kueue has it at the first position all the same.
    assert outlook.place is None
    assert outlook.forecast.likely_at is None


@pytest.mark.req("KU-04", "KU-05")
async def test_a_shortage_has_its_figures_holders_and_positions(kueue: RealKubernetes, place: str) -> None:
    make_queues(kueue, place, cluster_queue("busy", {"h100": {"nominalQuota": 8}}))
    long = gpu_job("old", "busy", 6)
    long["spec"]["activeDeadlineSeconds"] = 3600
    submit(kueue, place, long, admitted=True)
    submit(kueue, place, gpu_job("first", "busy", 4))
    await explained(kueue, place, "first", "WaitingForQuota")
    submit(kueue, place, gpu_job("second", "busy", 4))
    # Of equal jobs Kueue judges the first alone.
    row, outlook = await explained(kueue, place, "second", "")
    reason = reason_of(outlook)
    assert (reason.code, reason.judged) == ("WaitingForQuota", True)
    assert [(each.flavor, each.resource, each.missing) for each in reason.flavors] == [("h100", GPU, "2")]
    assert [(each.asked, each.free, each.used, each.nominal) for each in reason.quotas] == [("4", "2", "6", "8")]
    assert [each.name for each in outlook.named if each.job in outlook.holders] == ["old"]
    assert (outlook.position, reason.position_in_queue) == (2, 2)
    assert outlook.forecast.likely_at is not None
    # This user may see no nodes.
    assert outlook.forecast.no_bound is NoBound.NODES_UNSEEN
    # What the job before it left free would be admitted at once; so both have the same start.
    async with cockpit_of(kueue, ALICE, place) as backend:
        await until(backend, "second", lambda row: row.reason is not None)
        (start,) = await backend.starts([row.id])
        assert start.at is not None


@pytest.mark.req("KU-04", "KU-05")
async def test_who_borrows_is_named_and_may_be_preempted(kueue: RealKubernetes, place: str) -> None:
    quota = {"h100": {"nominalQuota": 8}}
    mine = cluster_queue("lends", quota, cohortName="both", preemption={"reclaimWithinCohort": "LowerPriority"})
    make_queues(kueue, place, mine, cluster_queue("borrows", quota, cohortName="both"))
    submit(kueue, place, gpu_job("large", "borrows", 4, pods=3, priority="high"), admitted=True)
    submit(kueue, place, gpu_job("own", "lends", 8))
    row, outlook = await explained(kueue, place, "own", "WaitingForQuota")
    (quotas,) = reason_of(outlook).quotas
    assert [(each.queue, each.amount, each.reclaim) for each in quotas.borrowers] == [("borrows", "4", "LowerPriority")]
    assert [each.name for each in outlook.named if each.job in outlook.holders] == ["large"]
    async with cockpit_of(kueue, ALICE, place) as backend:
        await until(backend, "own", lambda row: row.reason is not None)
        rows = {each.path: each for each in (await backend.queues()).rows}
        assert rows["both"].min == {"gres/gpu": 16_000}
        assert rows["both/borrows"].level == 1
    # The manager agrees: a job of higher priority takes the quota back.
    submit(kueue, place, gpu_job("small", "lends", 4, priority="high"), admitted=True)
    kueue.admin.delete(f"{JOBS.format(place)}/large", propagationPolicy="Background")
    async with cockpit_of(kueue, ALICE, place) as backend:
        await until(backend, "small", lambda row: row.state is JobState.RUNNING)
    assert row.name == "own"


@pytest.mark.req("KU-05")
async def test_flavors_with_other_nodes_are_named(kueue: RealKubernetes, place: str) -> None:
    make_queues(kueue, place, cluster_queue("labelled", {"a100": {"nominalQuota": 8}}))
    submit(kueue, place, gpu_job("other", "labelled", 1, nodeSelector={"model": "h100"}))
    _, outlook = await explained(kueue, place, "other", "NoMatchingFlavor")
    reason = reason_of(outlook)
    assert reason.never
    assert [(each.flavor, each.obstacle) for each in reason.flavors] == [("a100", FlavorObstacle.EXCLUDED)]


@pytest.mark.req("KU-04", "KU-05")
async def test_a_stopped_queue_and_one_that_is_not_there_are_told(kueue: RealKubernetes, place: str) -> None:
    kueue.admin.apply(
        cluster_queue("stopped", {"h100": {"nominalQuota": 8}}, stopPolicy="Hold"),
        local_queue("stopped", place, "stopped"),
    )
    submit(kueue, place, gpu_job("held", "stopped", 1))
    submit(kueue, place, gpu_job("lost", "nowhere", 1))
    async with cockpit_of(kueue, ALICE, place) as backend:
        held = await until(backend, "held", lambda row: isinstance(row.reason, QueueWaits) and bool(row.reason.code))
        lost = await until(backend, "lost", lambda row: isinstance(row.reason, QueueWaits) and bool(row.reason.code))
        for row in (held, lost):
            assert row.state is JobState.QUEUED
            assert (await backend.explain(row.id)).forecast.likely_at is None
        stopped = {row.path: row.stopped for row in (await backend.queues()).rows}
        assert stopped["stopped"] == "stopPolicy Hold"


@pytest.mark.req("KU-05")
async def test_an_admission_check_that_is_pending_is_named(kueue: RealKubernetes, place: str) -> None:
    check = {"apiVersion": f"{GROUP}/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "budget"}}
    kueue.admin.apply({**check, "spec": {"controllerName": "example.com/budget"}})
    ready = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    kueue.admin.merge(f"{API}/admissionchecks/budget/status", {"status": {"conditions": [ready]}})
    strategy = {"admissionChecks": [{"name": "budget"}]}
    make_queues(kueue, place, cluster_queue("checked", {"h100": {"nominalQuota": 8}}, admissionChecksStrategy=strategy))
    submit(kueue, place, gpu_job("asks", "checked", 1))
    row, _ = await explained(kueue, place, "asks", "AdmissionChecks")
    assert isinstance(row.reason, QueueWaits)
    assert "budget is Pending" in row.reason.message


@pytest.mark.req("KU-04")
def test_both_versions_of_the_api_say_the_same(kueue: RealKubernetes, place: str) -> None:
    kueue.admin.apply(cohort("family", {"h100": {"nominalQuota": 4}}), cohort("branch", {}, parentName="family"))
    make_queues(
        kueue, place, cluster_queue("versions", {"h100": {"nominalQuota": 8, "borrowingLimit": 2}}, cohortName="branch")
    )
    submit(kueue, place, gpu_job("runs", "versions", 8), admitted=True)

    def state(version: str) -> tuple[Any, ...]:
        found: KueueObjects = decoded(kueue.admin, version)
        made = admission_state(found)
        cell = next(iter(next(each for each in made.admitted.values() if each.queue == "versions").usage))
        return made.queues["versions"], made.quotas.available("versions", cell), made.quotas.potential("versions", cell)

    assert state("v1beta1") == state("v1beta2")
    assert state("v1beta2")[1:] == (2000, 10_000)


@pytest.mark.req("KU-05", "SC-12")
def test_the_managers_decisions_are_foretold(kueue: RealKubernetes, place: str) -> None:
    answers = Measurement(kueue, place, SEED, SITUATIONS).run()
    wrong = [str(each) for each in answers if not each.is_right]
    report = [f"Seed {SEED}, {SITUATIONS} situations.", "", *table(answers), "", *wrong]
    if REPORT:
        Path(REPORT).write_text("\n".join([*report, ""]))
    assert len(wrong) <= len(answers) // 20, "\n".join(report)
