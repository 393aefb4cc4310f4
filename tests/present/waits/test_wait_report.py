"""The report on a past wait: its parts by cause, what would have shortened it, and who was ahead."""

from __future__ import annotations

from datetime import UTC
from typing import get_args

import pytest
from msgspec.structs import replace

from cockpit.model import events
from cockpit.model.events import EventRecord
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.jobdetail import JobDetail
from cockpit.model.pod_reasons import NodesExcluded, Obstacle, Unschedulable
from cockpit.model.reasons import (
    BehindHead,
    Held,
    LimitReached,
    NodeShortfall,
    NotEnoughFree,
    Reason,
    Resource,
    SchedulerReason,
    Waited,
    WaitsForJob,
    WouldDelay,
)
from cockpit.model.spec import DependencyKind
from cockpit.present.columns import Context
from cockpit.present.job.tabs import tab_lines
from cockpit.present.slurm_reasons import SENTENCES
from cockpit.present.spans import plain
from cockpit.present.waits.causes import OF_TYPE, WaitCause, cause_of
from cockpit.present.waits.hints import hints
from cockpit.present.waits.lines import wait_lines
from cockpit.present.waits.report import WaitReport, wait_report
from tests.doubles.samples import HOUR, MINUTE, NOW, detail, job_row
from tests.present.job.test_page import AROUND

pytestmark = pytest.mark.req("UI-15")
CONTEXT = Context(now=NOW, zone=UTC)
LIMIT = LimitReached("account nlp", "GrpTRES", "gres/gpu", 64, 60, 8)
SHORT = NotEnoughFree(Resource.CARDS, 4, ("A100",), 1, 0, (NodeShortfall(NodeName("n03"), Resource.CARDS, 2),))


def started(*waited: Waited, submitted: int = NOW - 3 * HOUR, placed: int = NOW - HOUR, **spec: object) -> JobDetail:
    """A job that was submitted at nine and placed at eleven."""
    known = detail()
    attempt = replace(known.job.attempt, placed_at=Millis(placed))
    job = replace(known.job, submitted_at=Millis(submitted), attempt=attempt, spec=replace(known.job.spec, **spec))
    return replace(known, job=job, waited=waited, events=())


def at(minutes: int, body: events.EventBody) -> EventRecord:
    """An event so many minutes after the submission."""
    return EventRecord(
        seq=minutes, at=Millis(NOW - 3 * HOUR + minutes * MINUTE), actor="ann", origin="socket", body=body
    )


def reason(minutes: int, why: Reason | None, *ahead: int) -> Waited:
    return Waited(Millis(NOW - 3 * HOUR + minutes * MINUTE), why, tuple(map(JobId, ahead)))


def minutes(report: WaitReport) -> dict[WaitCause, float]:
    return {cause: lasted / MINUTE for cause, lasted in report.by_cause().items()}


def test_the_time_is_divided_by_cause_and_adds_up_to_the_wait() -> None:
    report = wait_report(
        started(reason(1, LIMIT), reason(60, SHORT), reason(90, Held("ann", None)), reason(100, SHORT)), NOW
    )
    assert report.seconds == 2 * 3600
    assert minutes(report) == {
        WaitCause.JOBS: 30 + 20,
        WaitCause.LIMITS: 59,
        WaitCause.HELD: 10,
        WaitCause.SCHEDULER: 1,
    }


def test_a_long_time_without_records_is_not_known_and_a_first_minute_is_the_schedulers() -> None:
    assert minutes(wait_report(started(reason(5, SHORT), reason(100, None)), NOW)) == {
        WaitCause.UNKNOWN: 5 + 20,
        WaitCause.JOBS: 95,
    }
    assert minutes(wait_report(started(), NOW)) == {WaitCause.UNKNOWN: 120}
    assert wait_report(started(submitted=NOW - HOUR), NOW).parts == ()


def test_events_explain_what_no_reason_was_recorded_for() -> None:
    job = JobId(4715)
    held = (at(0, events.JobHeld(job, "root")), at(30, events.JobReleased(job)))
    known = replace(started(begin_at=Millis(NOW - 2 * HOUR)), events=held)
    assert minutes(wait_report(known, NOW)) == {
        WaitCause.HELD: 30,
        WaitCause.BEGIN_TIME: 30,
        WaitCause.UNKNOWN: 60,
    }
    from_submission = replace(started(hold=True), events=held[1:])
    assert minutes(wait_report(from_submission, NOW)) == {WaitCause.HELD: 30, WaitCause.UNKNOWN: 90}


def test_a_shorter_limit_counts_from_the_first_moment_at_which_the_job_fitted() -> None:
    reserved = Millis(NOW - HOUR)
    would = WouldDelay(JobId(4711), reserved)
    report = wait_report(started(reason(10, SHORT), reason(60, would), reason(90, BehindHead(JobId(9)))), NOW)
    (first, second, third) = hints(report, CONTEXT)
    assert first.startswith("With a time limit of 1 h instead of ")
    assert first.endswith("it fitted at 10:00, before the reserved start of job 4711 (up to 1 h less).")
    assert second == "With 2 cards on each node instead of 4: n03 had that much free at 09:10 (up to 50 min less)."
    assert third == "With a higher priority, or a request for fewer resources (up to 30 min less)."


def test_no_shorter_limit_is_advised_where_the_job_asked_for_less() -> None:
    would = WouldDelay(JobId(4711), Millis(NOW))
    assert hints(wait_report(started(reason(0, would), time_limit_seconds=60), NOW), CONTEXT) == []


def test_limits_dependencies_and_holds_are_advised_with_their_sums() -> None:
    waits = WaitsForJob(DependencyKind.AFTER_OK, JobId(12))
    report = wait_report(
        started(reason(0, LIMIT), reason(5, waits), reason(60, LIMIT), reason(100, Held("ann", None))), NOW
    )
    assert hints(report, CONTEXT) == [
        "With an earlier end of job 12 (up to 55 min less).",
        "With a higher limit: account nlp has 60 of 64 cards in use (up to 45 min less).",
        "With an earlier release (up to 20 min less).",
    ]


def test_the_lines_name_cause_share_advice_and_who_was_ahead() -> None:
    rows = [
        job_row(4600, started_at=Millis(NOW - 9 * HOUR), ended_at=Millis(NOW - 2 * HOUR), card_milli=2000),
        job_row(4601, started_at=Millis(NOW - 9 * HOUR), ended_at=Millis(NOW - HOUR + 1)),
        job_row(
            4711, user="ann", started_at=Millis(NOW - 2 * HOUR), submitted_at=Millis(NOW - 9 * HOUR), card_milli=8000
        ),
        job_row(4800, user="bob\x1b", started_at=Millis(NOW - 2 * HOUR + 1), submitted_at=NOW, card_milli=1000),
        job_row(4712, started_at=Millis(NOW - HOUR)),
        job_row(4713, started_at=None),
    ]
    report = wait_report(started(reason(0, LIMIT), reason(30, SHORT, 4711, 4720)), NOW, rows)
    lines = [plain(each) for each in wait_lines(report, CONTEXT, 44, {rows[2].id: rows[2]}.get, letters=True)]
    assert lines == [
        "  waited 2 h",
        "  " + "J" * 30 + "L" * 10,
        "  J other jobs  1 h 30 min  75%  needs 4 A100 on one node",
        "  L limits      30 min      25%  account nlp has 60 of 64 cards in use",
        "  shorter With 2 cards on each node instead of 4: n03 had that much free at 09:30 (up to 1 h 30 min less).",
        "  shorter With a higher limit: account nlp has 60 of 64 cards in use (up to 30 min less).",
        "  ahead 4711 (ann, 8 cards) and 4720",
        "  room 4600 (ann, 2 cards) ended",
        "  meanwhile 4711 (ann, 8 cards) and 4800 (bob\\x1b, 1 card) started; 1 of them came after it",
    ]


def test_the_page_of_a_job_that_ran_has_the_report_and_that_of_a_waiting_one_has_not() -> None:
    known = started(reason(0, LIMIT))
    assert "  waited 2 h" in [plain(each) for each in tab_lines("why", known, AROUND)]
    queued = replace(
        known, row=replace(known.row, state=JobState.QUEUED), job=replace(known.job, state=JobState.QUEUED)
    )
    for other in (queued, started(), started(reason(0, LIMIT), placed=NOW - 3 * HOUR + 5000)):
        assert not any("waited" in plain(each) for each in tab_lines("why", other, AROUND))


def test_every_reason_has_a_cause() -> None:
    by_content = {"SchedulerReason", "NoAlternative", "PartitionRefuses", "PodsNotCreated", "Unschedulable"}
    assert {each.__name__ for each in get_args(Reason)} - by_content == {each.__name__ for each in OF_TYPE}
    codes = {code: cause_of(SchedulerReason(code)) for code, _ in SENTENCES}
    ended = {
        "SystemFailure",
        "JobLaunchFailure",
        "NonZeroExitCode",
        "RaisedSignal",
        "TimeLimit",
        "InactiveLimit",
        "OutOfMemory",
    }
    staging = {"BurstBufferStageIn", "BurstBufferOperation"}
    assert {code for code, cause in codes.items() if cause is WaitCause.UNKNOWN} == ended | staging
    assert cause_of(SchedulerReason("QOSMaxGRESPerUser")) is WaitCause.LIMITS
    assert cause_of(SchedulerReason("ReqNodeNotAvail, UnavailableNodes:n1")) is WaitCause.NODES
    assert cause_of(SchedulerReason("JobHeldUser")) is WaitCause.HELD
    of_nodes = NodesExcluded(3, Obstacle.TAINT)
    assert cause_of(Unschedulable(1, 1, 3, (of_nodes,))) is WaitCause.NODES
    assert cause_of(Unschedulable(1, 1, 3, (replace(of_nodes, obstacle=Obstacle.RESOURCE),))) is WaitCause.JOBS


def test_a_wait_without_any_reason_is_the_schedulers_only_if_the_job_started_at_once() -> None:
    assert minutes(wait_report(started(placed=NOW - 3 * HOUR + 20_000), NOW)) == {WaitCause.UNKNOWN: 1 / 3}
    assert minutes(wait_report(started(placed=NOW - 3 * HOUR + 3_000), NOW)) == {WaitCause.SCHEDULER: 0.05}
