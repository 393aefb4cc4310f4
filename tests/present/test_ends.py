"""How a job ended, or why it is being ended, in the sentence of its row."""

from __future__ import annotations

import pytest

from cockpit.model.attempt import EndCause
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.present.columns import Context
from cockpit.present.job_values import why
from tests.doubles.samples import NOW, failed_row, job_row

CONTEXT = Context(now=NOW)
STOPPED = {"state": JobState.STOPPED, "end_cause": EndCause.STOP, "exit_code": 143}


@pytest.mark.req("UI-01", "JT-36")
@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (failed_row(1, **STOPPED, ended_by="bob"), "was stopped by bob"),
        (failed_row(1, **STOPPED, ended_by="b\x1b[31mob"), "was stopped by b\\x1b[31mob"),
        (failed_row(1, **STOPPED), "was stopped"),
        (job_row(1, ending=EndCause.STOP, ended_by="bob"), "is being stopped by bob"),
        (job_row(1, ending=EndCause.PREEMPTED), "is being preempted by another job"),
        (failed_row(1, failed=(1, 3)), "exit 3; replica 1 failed"),
        (failed_row(1, failed=(2, 1)), "exit 3; replica 2 failed: exit 1"),
        (failed_row(1), "exit 3"),
        (job_row(1, failed=(2, 137)), "replica 2 failed: exit 137, killed by SIGKILL"),
        (
            failed_row(1, state=JobState.SUCCEEDED, exit_code=0, held_until=None, failed=(2, 1)),
            "replica 2 failed: exit 1",
        ),
        (failed_row(1, state=JobState.SUCCEEDED, exit_code=0, held_until=None), None),
    ],
)
def test_the_end_names_the_user_who_stopped_the_job_and_the_failed_replica(row: JobRow, sentence: str | None) -> None:
    assert why(row, CONTEXT) == sentence
