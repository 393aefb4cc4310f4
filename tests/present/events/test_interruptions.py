"""The sentences of giving way: what happened to the one, and for the other."""

from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.model import events
from cockpit.model.attempt import EndCause, EvictionMode, Grounds, Suspension
from cockpit.model.ids import JobId, Millis
from cockpit.present.events.sentences import event_sentence
from tests.doubles.samples import HOUR, NOW

JOB, TAKER, OTHER = JobId(7), JobId(9), JobId(8)

SENTENCES: list[tuple[events.EventBody, str]] = [
    (
        events.EndingBegan(JOB, EndCause.PREEMPTED, Millis(NOW + HOUR), TAKER, Grounds.QOS, requeue=True),
        (
            "is preempted by job 9, whose QOS may preempt its own: is asked to end, and is killed at 13:00, "
            "and waits again"
        ),
    ),
    (
        events.EndingBegan(JOB, EndCause.PREEMPTED, NOW, TAKER, Grounds.QUOTA),
        "is preempted by job 9, whose queue reclaims what its own borrowed: is asked to end at once",
    ),
    (
        events.EvictionsDecided(TAKER, (JOB, OTHER), EvictionMode.REQUEUE, Grounds.QOS),
        "jobs 7 and 8 end, to wait again, for it",
    ),
    (events.EvictionsDecided(TAKER, (JOB,), EvictionMode.SUSPEND, Grounds.QOS), "job 7 is suspended for it"),
    (events.JobSuspended(JOB, Suspension(by="ann")), "was suspended by ann"),
    (
        events.JobSuspended(JOB, Suspension(for_jobs=(TAKER,), grounds=Grounds.PARTITION)),
        "is suspended: preempted by job 9, whose partition is of a higher tier",
    ),
    (events.JobSuspended(TAKER, Suspension(for_jobs=(JOB, OTHER))), "is suspended while jobs 7 and 8 have a turn"),
    (events.JobResumed(JOB), "was resumed"),
    (events.JobRequeued(JOB, EndCause.PREEMPTED), "was preempted, and waits again"),
    (events.JobRequeued(JOB, EndCause.REQUEUE), "waits again"),
    (
        events.JobRequeued(JOB, EndCause.PREEMPTED, below_min=True),
        "has fewer workers than it needs: is suspended, and resumes by itself when there is space for them",
    ),
    (events.WaitEnded(JOB), "was suspended for as long as it waits for its workers, and waits as other jobs do"),
]


@pytest.mark.req("SC-08")
@pytest.mark.parametrize(("body", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES])
def test_an_eviction_names_the_victim_and_the_preemptor(body: events.EventBody, sentence: str) -> None:
    record = events.EventRecord(seq=1, at=NOW, actor="engine", origin="scheduler", body=body)
    assert event_sentence(record, UTC) == sentence
