"""A small cluster, the same in every test: five jobs, two nodes, one kept container."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from cockpit.model.accounting import EndedJob, Spending, UsageSum
from cockpit.model.attempt import Attempt, EndCause, ExitStatus, Replica
from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.events import EventRecord, JobEnded, JobPlaced, JobSubmitted, ReplicaEnded, ReplicaStarted
from cockpit.model.forecast import AwaitedJob, Change, Forecast, HoldingJob, Outlook, WhatIf
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import ArrayTask, Job, JobState, Submitter
from cockpit.model.jobdetail import JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Allocation, Card, CardSlice, Node, NodeState
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.reasons import Explanation, Held, NodeShortfall, NotEnoughFree, Resource
from cockpit.model.spec import Algorithm, JobSpec, NodeSpec, Sweep, Volume
from cockpit.model.view import HoldRow, NodeRow, Overview, Priorities, PriorityRow, SliceUse
from tests.doubles.memory_backend import MemoryBackend

MINUTE = 60_000
HOUR = 60 * MINUTE
NOW = Millis(1_791_201_600_000)
"""2026-10-05 12:00 UTC."""

WAITS = NotEnoughFree(
    Resource.CARDS,
    4,
    ("A100",),
    1,
    0,
    (NodeShortfall(NodeName("n07"), Resource.CARDS, 3), NodeShortfall(NodeName("n12"), Resource.CARDS, 2)),
)


def job_row(number: int, **changes: object) -> JobRow:
    """A job that runs since ten o'clock."""
    row = JobRow(
        id=JobId(number),
        version=1,
        name=f"job-{number}",
        user="ann",
        state=JobState.RUNNING,
        state_since=NOW,
        submitted_at=Millis(NOW - 3 * HOUR),
        started_at=Millis(NOW - 2 * HOUR),
        ended_at=None,
        held_until=None,
        ending=None,
        end_cause=None,
        exit_code=None,
        nodes=1,
        cpus=4,
        memory_mib=16 * 1024,
        card_milli=1000,
        card_models=("A100",),
        placed_on=(NodeName("n07"),),
        time_limit_seconds=8 * 3600,
        reason=None,
        command="python train.py",
        project="ann",
        output="/data/out",
        algorithm="/data/algo",
    )
    return msgspec.structs.replace(row, **changes)


def queued_row(number: int, **changes: object) -> JobRow:
    waiting = {"state": JobState.QUEUED, "started_at": None, "placed_on": (), "reason": WAITS, "card_milli": 4000}
    return job_row(number, **{**waiting, **changes})


def failed_row(number: int, **changes: object) -> JobRow:
    """Exit 3 a minute ago, kept for four hours."""
    failed = {
        "state": JobState.ERROR,
        "ended_at": Millis(NOW - MINUTE),
        "held_until": Millis(NOW - MINUTE + 4 * HOUR),
        "end_cause": EndCause.EXIT,
        "exit_code": 3,
        "card_milli": 500,
    }
    return job_row(number, **{**failed, **changes})


def five_jobs() -> list[JobRow]:
    return [
        job_row(4711, name="llama-sft", nodes=2, cpus=32, card_milli=16_000, card_models=()),
        queued_row(4720, name="vit-sweep", user="bob"),
        failed_row(4715, name="bert-eval", user="bob"),
        queued_row(4722, name="前処理", reason=Held("ann", Millis(NOW - 58 * MINUTE)), card_milli=0),
        job_row(4699, name="[bold]red", ending=EndCause.STOP, card_milli=0),
    ]


def node_row(name: str = "n07", **changes: object) -> NodeRow:
    """Eight A100, of which job 4711 has one whole and note half of another."""
    node = Node(
        name=NodeName(name),
        cpus=64,
        memory_mib=512 * 1024,
        cards=tuple(Card(index=index, model="A100") for index in range(8)),
        os="Debian 12",
        kernel="6.1.0",
        driver_version="550.54",
    )
    slices = (
        SliceUse(2, 0, 500, JobId(4700), "note", "bob"),
        SliceUse(0, None, 1000, JobId(4711), "llama-sft", "ann"),
    )
    return NodeRow(msgspec.structs.replace(node, **changes), 36, 24 * 1024, 1500, 2, slices, (JobId(4700), JobId(4711)))


def hold_row(number: int = 4715) -> HoldRow:
    return HoldRow(
        JobId(number),
        "bert-eval",
        "bob",
        JobState.ERROR,
        3,
        (NodeName("n03"),),
        Millis(NOW - MINUTE),
        Millis(NOW - MINUTE + 4 * HOUR),
        0,
    )


def job(number: int = 4715, **changes: object) -> Job:
    spec = JobSpec(
        name="bert-eval",
        command="python eval.py",
        output="/data/out",
        algorithm=Algorithm(path="/data/algo"),
        volumes=(Volume(name="scratch", path="/scratch"),),
        specs=(NodeSpec(cpus=4, memory_mib=16 * 1024, card_milli=500, card_models=("A100",)),),
    )
    place = Allocation(0, NodeName("n03"), 4, 16 * 1024, (CardSlice(0, 1, 500),))
    replica = Replica(
        rank=0,
        started_at=Millis(NOW - 2 * HOUR),
        ended_at=Millis(NOW - MINUTE),
        exit=ExitStatus(code=3),
        limits="cgroup v1",
    )
    ended = Job(
        id=JobId(number),
        spec=spec,
        submitter=Submitter(UserName("bob"), 1000, 1000, (), "/home/bob"),
        project="bob",
        submitted_at=Millis(NOW - 3 * HOUR),
        state=JobState.ERROR,
        state_since=Millis(NOW - MINUTE),
        attempt=Attempt(
            number=1, spec_index=0, placement=(place,), placed_at=Millis(NOW - 2 * HOUR), replicas=(replica,)
        ),
        exit=ExitStatus(code=3),
        end_cause=EndCause.EXIT,
        ended_at=Millis(NOW - MINUTE),
        held_until=Millis(NOW - MINUTE + 4 * HOUR),
    )
    return msgspec.structs.replace(ended, **changes)


def some_events() -> list[EventRecord]:
    failed = job()
    assert failed.attempt is not None
    bodies = (
        JobSubmitted(failed.id, failed.spec, failed.submitter, "bob"),
        JobPlaced(failed.id, 1, 0, failed.attempt.placement),
        ReplicaStarted(failed.id, 1, 0, "cgroup v1"),
        ReplicaEnded(failed.id, 1, 0, ExitStatus(code=3)),
        JobEnded(failed.id, JobState.ERROR, EndCause.EXIT, ExitStatus(code=3), failed.held_until),
    )
    return [
        EventRecord(
            seq=index + 1,
            at=Millis(NOW - HOUR + index * MINUTE),
            actor="engine" if index else "bob",
            origin="socket",
            body=body,
        )
        for index, body in enumerate(bodies)
    ]


def detail() -> JobDetail:
    return JobDetail(
        row=failed_row(4715, name="bert-eval", user="bob", placed_on=(NodeName("n03"),)),
        job=job(),
        explanation=None,
        events=tuple(some_events()),
        log_tail="loading\nRuntimeError: device-side assert\n",
    )


def waiting_detail() -> JobDetail:
    waiting = job(4720, state=JobState.QUEUED, attempt=None, ended_at=None, held_until=None, end_cause=None, exit=None)
    reserved = Explanation(JobId(4720), WAITS, 3, (JobId(4722), JobId(4718)), reserved_at=Millis(NOW + 100 * MINUTE))
    return JobDetail(
        row=queued_row(4720, name="vit-sweep"),
        job=waiting,
        explanation=reserved,
        events=(),
        priority=(breakdown(4720),),
    )


def sweep_detail() -> JobDetail:
    """The first trial of 4730, of four."""
    task = ArrayTask(JobId(4730), 0, 2, 4, 0, 3)
    sweep = Sweep(parameters={"lr": ("0.1", "0.01"), "layers": ("2", "4")}, parallel=2)
    found = job(4730, array=task)
    return msgspec.structs.replace(
        detail(), job=msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, sweep=sweep))
    )


def breakdown(number: int, **changes: object) -> Breakdown:
    """17 450 of age, fair share, size, partition and QOS."""
    parts = (
        Part(FactorName.AGE, 0.312, 10_000, 3120.0),
        Part(FactorName.FAIRSHARE, 0.59, 20_000, 11_800.0),
        Part(FactorName.JOB_SIZE, 0.065, 2000, 130.0),
        Part(FactorName.PARTITION, 0.5, 3000, 1500.0),
        Part(FactorName.QOS, 0.2, 5000, 1000.0),
    )
    counted = Breakdown(JobId(number), "gpu", 17_450, parts, nice=100)
    return msgspec.structs.replace(counted, **changes)


def priority_row(number: int, position: int | None, **changes: object) -> PriorityRow:
    row = PriorityRow(JobId(number), f"job-{number}", "ann", "nlp", "normal", "gpu", position, breakdown(number))
    return msgspec.structs.replace(row, **changes)


WEIGHTS = Weights(age=10_000, fairshare=20_000, job_size=2000, partition=3000, qos=5000)


def priorities() -> Priorities:
    """Four jobs: one that the user may not see, one that an administrator set, one that is held."""
    hidden = PriorityRow(JobId(0), "-", "-", "-", "-", "gpu", 2, None)
    direct = breakdown(4718, total=9000, parts=(), nice=0, direct=True)
    held = breakdown(4722, total=0, parts=(), nice=0)
    rows = (
        priority_row(4720, 1, name="vit-sweep"),
        hidden,
        priority_row(4718, 3, user="erin", breakdown=direct, task=ArrayTask(JobId(4716), 2)),
        priority_row(4722, None, name="前処理", breakdown=held),
    )
    return Priorities(PriorityKind.MULTIFACTOR, WEIGHTS, rows)


def overview() -> Overview:
    states = {"running": 2, "queued": 2, "error": 1}
    return Overview("lab", states, 1, 2, 128, 36, 1024 * 1024, 24 * 1024, 16_000, 1500)


def outlook() -> Outlook:
    """What is foretold of job 4720."""
    spec = JobSpec(name="vit-sweep", command="true", output="/out")
    return Outlook(
        job=JobId(4720),
        name="vit-sweep",
        position=3,
        explanation=Explanation(JobId(4720), WAITS, 3, (JobId(4718),)),
        forecast=Forecast(
            likely_at=Millis(NOW + HOUR),
            latest_at=Millis(NOW + 2 * HOUR),
            likely_from=Millis(NOW + HOUR // 2),
            likely_to=Millis(NOW + 2 * HOUR),
            after=(AwaitedJob(JobId(0), NOW), AwaitedJob(JobId(4711), Millis(NOW + HOUR))),
        ),
        what_ifs=(
            WhatIf(Change.CARDS, "4", "2", spec, Forecast(now=True, likely_at=NOW)),
            WhatIf(Change.LIMIT, "28800", "7200", spec, Forecast(likely_at=Millis(NOW + 10 * MINUTE))),
        ),
        named=(
            HoldingJob(JobId(4718), "first", "carol", running=False, nodes=4, cpus=32, memory_mib=1, card_milli=32_000),
            HoldingJob(JobId(4711), "runs", "ann\x1b[31m", running=True, nodes=1, cpus=8, memory_mib=1, card_milli=0),
        ),
    )


def small_cluster() -> MemoryBackend:
    backend = MemoryBackend()
    backend.job_rows = five_jobs()
    backend.details = {4715: detail(), 4720: waiting_detail(), 4730: sweep_detail()}
    backend.node_rows = [node_row(), node_row("n12", state=NodeState.DRAINED, state_reason="broken fan")]
    backend.hold_rows = [hold_row()]
    backend.ended_jobs = ended_jobs()
    backend.spent = spending
    backend.event_records = some_events()
    backend.glance = overview()
    backend.order = priorities()
    backend.outlooks[4720] = outlook()
    return backend


def ended_jobs() -> list[EndedJob]:
    """Two hours with half a card of 4715, an hour without any of 4699 and with one of 4698."""
    return [
        EndedJob(
            failed_row(4715, name="bert-eval", user="bob", account="nlp"),
            2,
            2 * HOUR,
            8 * HOUR,
            1000 * HOUR,
            7 * HOUR,
            12_288,
            81,
        ),
        EndedJob(failed_row(4699, user="ann", account="nlp", card_milli=0), 1, HOUR, 4 * HOUR, 0, None, None, None),
        EndedJob(
            job_row(4698, user="ann", account="vision", state=JobState.SUCCEEDED, exit_code=0, end_cause=EndCause.EXIT),
            1,
            HOUR,
            4 * HOUR,
            1000 * HOUR,
            HOUR,
            900,
            None,
        ),
    ]


def spending(edges: tuple[Millis, ...]) -> Spending:
    """On the first day three cards of ann's all day, then one of bob's, and one of somebody's whom nobody may name."""
    first, rest = edges[1] - edges[0], [later - earlier for earlier, later in pairwise(edges[1:])]
    others = [
        (
            UsageSum("bob", "nlp", "q", "normal", 1000 * each, 4 * each),
            UsageSum("", "nlp", "", "normal", 1000 * each, 0),
        )
        for each in rest
    ]
    return Spending(edges, ((UsageSum("ann", "vision", "p", "high", 3000 * first, 8 * first),), *others))
