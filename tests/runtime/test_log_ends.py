"""When a follower of a log is told that nothing more will come."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Attempt, Replica
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.job import Job, JobState
from cockpit.model.node import Allocation
from cockpit.runtime.reading import _has_ended
from tests.builders import ANN, NOON, a_spec

pytestmark = pytest.mark.req("JT-48")
JOB = Job(id=JobId(7), spec=a_spec(), submitter=ANN, project="p", submitted_at=NOON, state_since=NOON)


def runs(attempt: int, *ended_at: int | None) -> Job:
    replicas = tuple(
        Replica(rank=rank, started_at=NOON, ended_at=at and Millis(at)) for rank, at in enumerate(ended_at)
    )
    placement = tuple(Allocation(rank, NodeName("n1"), 1, 1) for rank in range(len(ended_at)))
    return replace(
        JOB,
        state=JobState.RUNNING,
        attempt=Attempt(number=attempt, spec_index=0, placement=placement, placed_at=NOON, replicas=replicas),
    )


@pytest.mark.parametrize(
    ("job", "ended"),
    [
        (None, True),
        (JOB, False),
        (replace(JOB, state=JobState.STOPPED), True),
        (runs(2, None, None), False),
        (runs(2, None, NOON), True),
        (runs(2, NOON, None), False),
        (runs(3, None, None), True),
    ],
)
def test_a_log_ends_with_its_replica_or_its_attempt(job: Job | None, ended: bool) -> None:
    jobs = {} if job is None else {job.id: job}
    assert _has_ended(jobs, ReplicaId(JOB.id, 2, 1)) is ended
