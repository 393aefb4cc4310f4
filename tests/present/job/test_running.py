"""A running job: what it uses of what it has, and what a person should know in time."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Replica
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.jobdetail import ReplicaUse
from cockpit.present.columns import Context
from cockpit.present.job.running import running_lines
from cockpit.present.spans import plain
from cockpit.runtime.containers.shim.plain import LACKS
from tests.doubles.samples import HOUR, MINUTE, NOW, detail, job_row

CONTEXT = Context(now=NOW, zone=UTC)
ATTEMPT = detail().job.attempt
PLACE = ATTEMPT.placement[0]


def shown(*use: ReplicaUse, limits: str = "cgroup v2", **fields: object) -> list[str]:
    """Of a job of eight hours, with 16G on each of two nodes."""
    attempt = replace(
        ATTEMPT,
        placement=(PLACE, replace(PLACE, rank=1)),
        replicas=(Replica(rank=0, limits=limits), Replica(rank=1, limits=limits)),
    )
    known = replace(detail(), job=replace(detail().job, attempt=attempt), use=use)
    return [plain(each) for each in running_lines(job_row(4711, **fields), known, CONTEXT)]


@pytest.mark.req("UI-02")
def test_the_fullest_replica_of_each_resource_is_shown() -> None:
    assert shown(ReplicaUse(0, memory_mib=2048), ReplicaUse(1, memory_mib=8192)) == [
        "  uses 8G/16G of memory in its fullest replica, 1"
    ]
    assert shown() == []


@pytest.mark.req("UI-02")
@pytest.mark.parametrize(
    ("ran", "words"),
    [(7 * HOUR, []), (8 * HOUR - 24 * MINUTE, ["24 min"]), (8 * HOUR - 30_000, ["30 s"]), (9 * HOUR, ["0 s"])],
)
def test_a_near_time_limit_is_an_alert(ran: int, words: list[str]) -> None:
    expected = [f"  ⚠ its time limit ends it in {each}" for each in words]
    assert shown(started_at=Millis(NOW - ran)) == expected
    assert shown(started_at=Millis(NOW - ran), state=JobState.SUSPENDED) == []


@pytest.mark.req("UI-02")
@pytest.mark.parametrize(("ran", "words"), [(0, []), (3 * MINUTE, []), (4 * MINUTE, ["1 min"])])
def test_a_short_job_is_warned_of_in_the_last_part_of_its_time_only(ran: int, words: list[str]) -> None:
    expected = [f"  ⚠ its time limit ends it in {each}" for each in words]
    assert shown(started_at=Millis(NOW - ran), time_limit_seconds=300) == expected


@pytest.mark.req("UI-02")
def test_nearly_full_memory_and_unenforced_limits_are_alerts() -> None:
    assert shown(ReplicaUse(1, memory_mib=1024, peak_memory_mib=15_000))[:-1] == [
        "  ⚠ replica 1 has had 14.6G of its 16G of memory; beyond that it is killed"
    ]
    plain = f"soft: no cgroup; {LACKS}"
    assert shown(limits=plain) == [f"  ⚠ it has no container ({plain})"]
    assert shown(limits="soft: no cgroup\x1b[31m") == ["  ⚠ its limits are not all enforced (soft: no cgroup\\x1b[31m)"]
