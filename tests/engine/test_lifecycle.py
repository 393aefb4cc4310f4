"""Every pair of states, legal or not, goes through the one table."""

from __future__ import annotations

from itertools import product

import pytest

from cockpit.engine.apply.rules import LEGAL, IllegalTransition, since
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ENDED, Job, JobState
from tests.builders import ANN, a_spec


@pytest.mark.req("JT-31")
@pytest.mark.parametrize(("before", "after"), list(product(JobState, JobState)))
def test_every_pair_is_legal_exactly_when_the_table_says_so(before: JobState, after: JobState) -> None:
    who = {"spec": a_spec(), "submitter": ANN, "project": "ann", "submitted_at": Millis(0)}
    job = Job(id=JobId(1), state=before, state_since=Millis(1), **who)
    if before is after or after in LEGAL[before]:
        assert since(job, after, Millis(2)) == (1 if before is after else 2)
    else:
        with pytest.raises(IllegalTransition, match=f"from {before} to {after}"):
            since(job, after, Millis(2))


@pytest.mark.req("JT-31")
def test_an_end_state_is_left_only_by_a_requeue() -> None:
    assert all(LEGAL[state] == {JobState.QUEUED} for state in ENDED)


@pytest.mark.req("JT-31")
def test_no_job_succeeds_or_expires_without_having_run() -> None:
    before_running = {JobState.QUEUED, JobState.PRECHECKING, JobState.STAGING, JobState.STARTING}
    for state in before_running:
        assert LEGAL[state].isdisjoint({JobState.SUCCEEDED, JobState.EXPIRED})
