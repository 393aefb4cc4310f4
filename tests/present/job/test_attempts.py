"""What a job's page says of the attempts before the last one, and of what follows a failure."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.engine.views.rows import job_row
from cockpit.model.attempt import Attempt, EndCause, ExitStatus, Replica
from cockpit.model.ids import Millis, NodeName
from cockpit.model.node import Allocation
from cockpit.model.resilience import Elastic, JobRestart, OnSlow, Performance, Restart, Resume, WorkerRestart
from cockpit.model.spec import ExcludedNode
from cockpit.present.columns import Context
from cockpit.present.job.attempts import attempt_facts, attempt_id
from cockpit.present.job.page import facts
from tests.builders import HOUR, MINUTE
from tests.doubles.samples import NOW, detail, job

CONTEXT = Context(now=Millis(NOW + HOUR), zone=UTC)


def attempt(number: int, cause: EndCause | None, *exits: ExitStatus, started_at: Millis | None = NOW) -> Attempt:
    ranks = range(len(exits))
    ends = [Millis(NOW + (rank + 1) * MINUTE) for rank in ranks]
    return Attempt(
        number=number,
        spec_index=0,
        placement=tuple(Allocation(rank, NodeName(f"n{rank}"), 1, 64) for rank in ranks),
        placed_at=NOW,
        replicas=tuple(
            Replica(rank=rank, started_at=started_at, ended_at=ends[rank], exit=exits[rank]) for rank in ranks
        ),
        ended_at=Millis(NOW + 2 * MINUTE),
        cause=cause,
    )


def told(*earlier: Attempt, retries: int = 0, **spec: object) -> tuple[str, list[str]]:
    last = attempt(len(earlier) + 1, None, ExitStatus(code=0))
    changed = replace(job(), spec=replace(job().spec, **spec), attempt=last, earlier=earlier, retries=retries)
    shown = replace(detail(), job=changed, row=job_row(changed, None))
    return attempt_id(shown.row), [f"{label}: {text}" for label, text in attempt_facts(shown, CONTEXT)]


@pytest.mark.req("JT-18")
def test_a_job_with_one_attempt_has_no_attempt_lines() -> None:
    assert told() == ("4715", [])


@pytest.mark.req("JT-18", "JT-17", "EL-07")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"restart": Restart(max_restarts=1)}, "begins again, once"),
        ({"resume": Resume(max_resumes=3, grace_seconds=300)}, "resumes, up to 3 times; has 5:00 for a checkpoint"),
        (
            {
                "elastic": Elastic(
                    workers=1,
                    max_workers=1,
                    job_restart_policy=JobRestart.ON_FAILURE,
                    worker_restart_policy=WorkerRestart.ON_FAILURE,
                )
            },
            "begins again, up to 3 times; another worker takes the place of one, up to 3 times",
        ),
    ],
)
def test_the_restart_policy_is_shown_before_a_failure(spec: dict, said: str) -> None:
    assert told(**spec) == ("4715", [f"on failure: {said}"])


@pytest.mark.req("EL-13")
def test_the_policy_for_slow_iterations_is_shown_too() -> None:
    performance = Performance(threshold=0.9, action=OnSlow.RESCHEDULE)
    _, lines = told(resume=Resume(max_resumes=1, grace_seconds=60, performance=performance))
    assert lines[1:] == ["when slow: alert above 0.9 of an iteration's time, and it resumes on other nodes"]


@pytest.mark.req("JT-18", "JT-17")
def test_each_earlier_attempt_is_shown_with_its_end() -> None:
    lost = ExitStatus(lost="prolog 1 ended with 1 on n0")
    assert told(
        attempt(1, EndCause.EXIT, ExitStatus(signal=9), ExitStatus(code=3)),
        attempt(2, EndCause.PREEMPTED, ExitStatus(code=255)),
        attempt(3, EndCause.START_FAILED, lost, started_at=None),
        retries=1,
        restart=Restart(max_restarts=2),
    ) == (
        "4715#4",
        [
            "on failure: begins again, up to 2 times",
            "attempts: 4 · retry 1 of 2",
            "attempt #1: on n0 and n1 · from 12:00 to 12:02 · exit 137, killed by SIGKILL",
            "attempt #2: on n0 · from 12:00 to 12:02 · was preempted by another job",
            "attempt #3: on n0 · never started · prolog 1 ended with 1 on n0",
        ],
    )


@pytest.mark.req("EL-10")
def test_a_jobs_page_names_the_nodes_that_it_may_not_use_and_why() -> None:
    excluded = ExcludedNode(node=NodeName("n1"), because="no card\x1b", until=Millis(NOW + 2 * HOUR))
    changed = replace(job(), spec=replace(job().spec, excluded=(excluded,)))
    lines = list(facts(replace(detail(), job=changed), CONTEXT))
    (line,) = (each for each in lines if "excluded" in each)
    assert line.split(maxsplit=1)[1] == "n1 until 14:00: its check failed there: no card\\x1b"


@pytest.mark.req("JT-18")
def test_the_reason_of_an_attempt_that_did_not_start_is_that_of_its_first_replica_to_end() -> None:
    image, other = (
        ExitStatus(lost="there is no such image"),
        ExitStatus(lost="it was ended meanwhile"),
    )
    ended = attempt(1, EndCause.START_FAILED, other, image)
    late, early = (replace(each, ended_at=Millis(NOW + at)) for each, at in zip(ended.replicas, (9, 1), strict=True))
    _, lines = told(replace(ended, replicas=(late, early)))
    assert lines[-1].endswith("there is no such image")
