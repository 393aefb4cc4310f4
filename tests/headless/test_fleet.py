"""`cockpit fleet`: the jobs and pods of a fleet over all its clusters, and a cluster's own object."""

from __future__ import annotations

import json

import pytest

from cockpit.errors import RequestRefused
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow, FleetShown, MemberObject
from cockpit.model.ids import JobId, Millis
from cockpit.model.refusal import Refusal, RefusalKind
from tests.doubles.samples import NOW
from tests.headless.conftest import Desk

pytestmark = pytest.mark.req("FL-09", "UI-40")


def a_row(**fields: object) -> FleetJobRow:
    usual = {
        "job": JobId(7),
        "name": "pytorch-test",
        "user": "ann",
        "cluster": "cf1",
        "fleet_state": "running",
        "state": "Running",
        "created_at": Millis(NOW - 383_000),
        "adopted": True,
        "replicas": 3,
        "ready": 3,
        "heard_at": NOW,
    }
    return FleetJobRow(**usual | fields)


@pytest.fixture
def desk() -> Desk:
    with_fleet = Desk()
    pod = FleetPodRow(
        job=JobId(7),
        name="pytorch-test-master-0",
        cluster="cf1",
        ready=1,
        containers=1,
        status="Running",
        restarts=0,
        created_at=Millis(NOW - 436_000),
        rank=0,
    )
    silent = a_row(cluster="cf2", silence="cf2 cannot be reached.", heard_at=Millis(NOW - 180_000), state="Created")
    own = a_row(job=JobId(0), name="own", adopted=False, fleet_state="", own="12")

    async def fleet(*, job: JobId | None = None, pods: bool = False, jobs: object = ()) -> FleetShown:
        if pods:
            return FleetShown(pods=(pod,))
        return FleetShown(jobs=(a_row(),) if job else (a_row(), silent, own))

    async def own_object(job: JobId, *, cluster: str = "") -> MemberObject:
        if cluster == "nowhere":
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, "The fleet has no member 'nowhere'."))
        return MemberObject(cluster=cluster, own=f"{job}", form="json", text='{\n  "kind": "\x1b[31mPyTorchJob"\n}')

    with_fleet.backend.fleet = fleet
    with_fleet.backend.own_object = own_object
    return with_fleet


def test_one_table_over_all_clusters_with_both_states(desk: Desk) -> None:
    title, there, silent, own = desk("fleet").lines
    assert title.split()[:8] == ["NAME", "CLUSTER", "STATE", "AGE", "ADOPTION", "FLEET", "STATE", "READY"]
    assert " ".join(there.split()).startswith("pytorch-test cf1 Running 6 min Y running 3/3")
    assert "cf2 does not answer; what is shown is 3 min old: cf2 cannot be reached." in silent
    assert " ".join(own.split()).startswith("own cf1 Running 6 min N – 3/3")


def test_the_json_has_every_column(desk: Desk) -> None:
    there, silent, _ = json.loads(desk("fleet", "-o", "json").out)["rows"]
    assert (there["cluster"], there["adoption"], there["fleet_state"], there["why"]) == ("cf1", "Y", "running", None)
    assert (silent["data_age_seconds"], silent["age_seconds"]) == (180, 383)


def test_a_job_alone_and_a_filter(desk: Desk) -> None:
    assert len(desk("fleet", "7").lines) == 2
    assert [line.split()[0] for line in desk("fleet", "--filter", "adoption:N").lines[1:]] == ["own"]


def test_the_pods_in_the_form_of_kubectl(desk: Desk) -> None:
    title, pod = desk("fleet", "pods").lines
    assert title.split() == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"]
    assert " ".join(pod.split()) == "pytorch-test-master-0 cf1 1/1 Running 0 7 min"


def test_a_member_s_own_object_is_printed_without_control_characters(desk: Desk) -> None:
    printed = desk("fleet", "object", "7", "-m", "cf1")
    assert "PyTorchJob" in printed.out.decode()
    assert b"\x1b" not in printed.out
    refused = desk("fleet", "object", "7", "--member", "nowhere")
    assert refused.code == ExitCode.NOT_FOUND
    assert "no member 'nowhere'" in refused.err


@pytest.mark.parametrize("words", [("7/2",), ("7", "--replica", "2")])
def test_the_events_of_a_replica_are_asked_for_by_its_rank(desk: Desk, words: tuple[str, ...]) -> None:
    assert desk("events", *words).code == ExitCode.OK
    assert desk.backend.asked[-1] == ("events", JobId(7), -1, 1000, 2)


def test_the_events_of_a_replica_need_its_job(desk: Desk) -> None:
    refused = desk("events", "--replica", "2")
    assert refused.code == ExitCode.USAGE
    assert "--replica N needs the ID of a job" in refused.err
