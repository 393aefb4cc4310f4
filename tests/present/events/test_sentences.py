from __future__ import annotations

from datetime import UTC
from typing import get_args

import pytest

from cockpit.model import events
from cockpit.model.alerts import Alert, AlertKind
from cockpit.model.attempt import EndCause, ExitStatus, Grounds, Slow
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.steps import Interruption
from cockpit.present.events.alerts import alert_sentence
from cockpit.present.events.sentences import event_job, event_kind, event_sentence
from tests.doubles.samples import HOUR, NOW, job, node_row
from tests.present.corpus import HOSTILE, is_harmless
from tests.present.events.test_fleet import EVENTS as FLEET_SENTENCES
from tests.present.events.test_interruptions import SENTENCES as GIVING_WAY
from tests.present.events.test_rules import SENTENCES as RULE_SENTENCES

JOB = JobId(7)
PLACE = (
    Allocation(0, NodeName("n01"), 1, 1),
    Allocation(1, NodeName("n02"), 1, 1, (CardSlice(0, None), CardSlice(1, None))),
)


def raised(kind: AlertKind, **facts: object) -> events.AlertRaised:
    return events.AlertRaised(JOB, Alert(kind=kind, at=NOW, **facts))


SENTENCES: list[tuple[events.EventBody, str]] = [
    (events.JobSubmitted(JOB, job().spec, job().submitter, "p"), "was submitted as bert-eval by bob"),
    (events.JobHeld(JOB, "ann"), "was held by ann"),
    (events.TimeLimitSet(JOB, 21_600), "may run for 6:00:00 from its start"),
    (events.JobEdited(JOB, job().spec), "was edited, and is now bert-eval"),
    (events.JobReleased(JOB), "was released"),
    (events.JobDeleted(JOB), "was taken off the lists"),
    (events.JobPlaced(JOB, 1, 0, PLACE), "was placed on n01 and n02 with 2 cards"),
    (events.JobPlaced(JOB, 1, 1, PLACE), "was placed on n01 and n02 with 2 cards, by spec 2; the others are withdrawn"),
    (events.JobPlaced(JOB, 2, 0, PLACE[:1]), "was placed on n01 (attempt 2)"),
    (events.PrecheckPassed(JOB, 1, ""), "its nodes were checked"),
    (
        events.PrecheckPassed(JOB, 2, "n1 has its 8 CPUs, its memory and 1 card that answers"),
        "its nodes were checked: n1 has its 8 CPUs, its memory and 1 card that answers (attempt 2)",
    ),
    (
        events.NodeExcluded(JOB, NodeName("n1"), "no card", Millis(NOW + HOUR)),
        "does not use n1 until 13:00: its check failed there: no card",
    ),
    (events.NodeReadmitted(JOB, NodeName("n1")), "may use n1 again"),
    (events.NodeReadmitted(JOB, NodeName("n1"), "root"), "may use n1 again, which was resumed by root"),
    (
        events.PrecheckFailed(JOB, 1, NodeName("n1"), "card 1 (A100) does not answer any more"),
        "is queued again: n1 failed its check: card 1 (A100) does not answer any more",
    ),
    (
        events.FaultFound(JOB, 1, NodeName("n1"), "the network interface eth0 is down"),
        "a fault was found on n1: the network interface eth0 is down",
    ),
    (
        events.ClusterReported(
            job=JOB, about="Pod train-0", reason="FailedScheduling", message="0/3 nodes are available", count=4
        ),
        "Pod train-0: FailedScheduling: 0/3 nodes are available (4 times)",
    ),
    (
        events.PerformanceFell(JOB, 1, Slow(rank=1, hardware_ms=95.0, e2e_ms=100.0), 0.9),
        "its iterations are slow: their hardware took 0.95 of the whole time, above 0.9 (95 of 100 ms in replica 1)",
    ),
    (
        events.PerformanceFell(
            JOB, 1, Slow(rank=0, hardware_ms=1.0, e2e_ms=1.0), 0.5, "ann@example.org", (NodeName("n2"),)
        ),
        (
            "its iterations are slow: their hardware took 1 of the whole time, above 0.5 (1 of 1 ms in replica 0); "
            "it continues on n2"
        ),
    ),
    (
        raised(AlertKind.PERFORMANCE, slow=Slow(rank=1, hardware_ms=95.0, e2e_ms=100.0), threshold=0.9),
        (
            "alert (performance): its iterations are slow: their hardware took 0.95 of the whole time, above 0.9 "
            "(95 of 100 ms in replica 1)"
        ),
    ),
    (
        raised(AlertKind.FAULT, nodes=(NodeName("n1"),), because="the network interface eth0 is down"),
        "alert (fault): a fault was found on n1: the network interface eth0 is down",
    ),
    (
        raised(AlertKind.RECLAIM, nodes=(NodeName("n1"),), ranks=(2,), kill_at=Millis(NOW + HOUR)),
        "alert (reclaim): n1 is taken back: 1 worker has until 13:00 to end; it continues without",
    ),
    (
        raised(AlertKind.RECLAIM, nodes=(NodeName("n1"), NodeName("n2")), ranks=(2, 3), kill_at=NOW),
        "alert (reclaim): n1 and n2 are taken back: 2 workers have no time to end; it continues without",
    ),
    (
        raised(AlertKind.RECLAIM, kill_at=Millis(NOW + HOUR), continues=False),
        "alert (reclaim): its nodes are taken back: it has until 13:00 to save its state, and waits again",
    ),
    (
        raised(AlertKind.SUSPENDED),
        (
            "alert (suspended): it has fewer workers than it needs: it is suspended, and resumes by itself when there "
            "is space"
        ),
    ),
    (
        raised(AlertKind.WAITING),
        "alert (waiting): it was suspended for as long as it waits for its workers, and waits as other jobs do",
    ),
    (
        raised(AlertKind.WAITING, continues=False),
        "alert (waiting): it was suspended for as long as it waits for its workers, and has ended",
    ),
    (
        raised(AlertKind.BLOCKED, nodes=(NodeName("n1"),), because="it has not answered for 600 s"),
        "alert (blocked): n1 is on its block list: it has not answered for 600 s",
    ),
    (
        raised(AlertKind.EXHAUSTED, retries=3, exit=ExitStatus(code=3)),
        "alert (exhausted): it failed (exit 3), and has no retry left after 3 retries",
    ),
    (events.ReceiverFailed("the alerts' command notify", "ended with 1"), "the alerts' command notify ended with 1"),
    (events.ReceiverRecovered("the alerts' command notify"), "the alerts' command notify takes alerts again"),
    (
        events.ReplicaEnded(JOB, 1, 0, ExitStatus(code=7, hook="before_start")),
        "replica 0 ended: before_start failed: exit 7",
    ),
    (events.JobRequeued(JOB, EndCause.EXIT, ExitStatus(code=3), 1), "failed (exit 3) and begins again, retry 1"),
    (events.ReplicaStaged(JOB, 1, 0), "replica 0 has its copies"),
    (events.ReplicaStarted(JOB, 1, 0, "cgroup v1"), "replica 0 started (limits: cgroup v1)"),
    (events.ReplicaEnded(JOB, 1, 1, ExitStatus(code=3)), "replica 1 ended: exit 3"),
    (
        events.ReplicaEnded(JOB, 1, 1, ExitStatus(signal=9, oom=True)),
        "replica 1 ended: exit 137: it used more memory than it asked for",
    ),
    (events.ReplicaEnded(JOB, 1, 1, ExitStatus(lost="the machine rebooted")), "replica 1 ended: the machine rebooted"),
    (
        events.EndingBegan(JOB, EndCause.TIME_LIMIT, Millis(NOW + HOUR)),
        "is asked to end (time limit), and is killed at 13:00",
    ),
    (events.EndingBegan(JOB, EndCause.STOP, NOW), "is asked to end (stop) at once"),
    (events.GraceEnded(JOB), "had its time to end and is killed"),
    (events.JobWarned(JOB), "gets its signal before the time limit"),
    (events.WorkersAdded(JOB, 1, PLACE, 4.0), "grows by 2 workers: n01 and n02"),
    (
        events.WorkersRecalled(JOB, (2,), Millis(NOW + HOUR), JobId(9), Grounds.QOS),
        "is preempted by job 9, whose QOS may preempt its own: replica 2 is recalled, and killed at 13:00",
    ),
    (
        events.WorkersRecalled(JOB, (2, 3), NOW, JobId(9), Grounds.QUOTA),
        "is preempted by job 9, whose queue reclaims what its own borrowed: replicas 2 and 3 are recalled at once",
    ),
    (events.WorkerReplaced(JOB, 1, 2, 5, 1), "replica 2 ended, and replica 5 takes its place, retry 1"),
    (events.WorkersLeft(JOB, (1, 2), 2.0), "continues without replicas 1 and 2"),
    (
        events.TrainingResumed(JOB, 2, Interruption.RECLAIMED, 9, 120, 100),
        "trains on after a reclaim: 20 steps lost (step 120 reached, resumed from step 100)",
    ),
    (
        events.TrainingResumed(JOB, 1, Interruption.WORKER_FAILED, 9, 120, 120),
        "trains on after the end of a worker: no steps lost (step 120 reached, resumed from step 120)",
    ),
    (
        events.TrainingResumed(JOB, 2, Interruption.NODE_FAULT, 9, None, 100),
        "trains on after a fault of a node: how many steps were lost is not known (resumed from step 100)",
    ),
    (events.NodeUnblocked(JOB, NodeName("n2")), "may have workers on n2 again: it is off its block list"),
    (
        events.WorkersLeft(JOB, (2,), 2.0, "it has not answered for 600 s"),
        "continues without replica 2: it has not answered for 600 s; its node is on its block list",
    ),
    (events.JobEnded(JOB, JobState.STOPPED, EndCause.STOP), "ended: stopped (stop)"),
    (
        events.JobEnded(JOB, JobState.ERROR, EndCause.EXIT, None, Millis(NOW + HOUR)),
        "ended: error (exit); held until 13:00",
    ),
    (events.HoldExtended(JOB, Millis(NOW + HOUR)), "is held until 13:00"),
    (events.HoldEnded(JOB, events.HoldEndCause.EXPIRED), "its held containers were removed: the hold expired"),
    (events.HoldEnded(JOB, events.HoldEndCause.ENDED), "its held containers were removed: a user ended the hold"),
    (events.ShellOpened(JOB, 0), "replica 0 was entered"),
    (events.ShellOpened(JOB, 0, ("ls", "-l")), "replica 0 was entered to run ls -l"),
    (events.JobArchived(JOB), "moved to accounting"),
    (events.NodesChanged((node_row("n01").node,)), "the cluster has 1 node: n01"),
    (events.EngineStarted("0.1.0", 7), "the engine 0.1.0 started as process 7"),
    (events.EngineStopAsked(), "the engine was asked to stop"),
    (events.EngineStopAsked(jobs=True), "the engine was asked to stop, with every job"),
    (events.EngineStopped("0.1.0"), "the engine 0.1.0 stopped"),
]


def record(body: events.EventBody) -> events.EventRecord:
    return events.EventRecord(seq=1, at=NOW, actor="ann", origin="socket", body=body)


@pytest.mark.parametrize(("body", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES])
def test_every_event_has_its_sentence(body: events.EventBody, sentence: str) -> None:
    assert event_sentence(record(body), UTC) == sentence


def test_no_event_is_forgotten() -> None:
    told = [*SENTENCES, *RULE_SENTENCES, *GIVING_WAY, *FLEET_SENTENCES]
    assert {type(body) for body, _ in told} == set(get_args(events.EventBody))


def test_kind_and_job_of_an_event() -> None:
    assert event_kind(events.JobReleased(JOB)) == "job_released"
    assert event_job(events.JobReleased(JOB)) == JOB
    assert event_job(events.EngineStopped("1")) is None


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_names_in_events_are_escaped(hostile: str) -> None:
    bodies: list[events.EventBody] = [
        events.JobHeld(JOB, hostile),
        events.JobPlaced(JOB, 1, 0, (Allocation(0, NodeName(hostile), 1, 1),)),
        events.ReplicaStarted(JOB, 1, 0, hostile),
        events.ReplicaEnded(JOB, 1, 0, ExitStatus(lost=hostile)),
        events.ShellOpened(JOB, 0, (hostile,)),
        events.NodesChanged((node_row(hostile).node,)),
    ]
    assert all(is_harmless(event_sentence(record(body), UTC)) for body in bodies)


@pytest.mark.req("EL-02")
def test_an_alert_about_a_reclaim_says_later_too_how_long_the_workers_had() -> None:
    alert = Alert(kind=AlertKind.RECLAIM, at=NOW, kill_at=Millis(NOW + HOUR), continues=False)
    assert "it has until 13:00 to save its state" in alert_sentence(alert, Millis(NOW + 2 * HOUR), UTC)
