"""One frame of every kind that goes over the engine's socket, and the files in which they were once recorded.

`python -m tests.protocol.recording` records the kinds that have no file yet. A file is never recorded anew: what a
release has spoken, later ones must understand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cockpit.engine.views.rows import job_row
from cockpit.model import asking, events, fleetrow, jobdetail, view
from cockpit.model.accounting import EndedJob, Spending, UsageSum
from cockpit.model.accounts import Association, Qos
from cockpit.model.attempt import Attempt, EndCause, ExitStatus, Replica
from cockpit.model.catalogue import CatalogueShown, DatasetEntry, EntryRow, SpecEntry
from cockpit.model.cluster import Cluster, Partition, PriorityKind, Reservation, Weights
from cockpit.model.forecast import AwaitedJob, Change, ExpectedStart, Forecast, HoldingJob, Outlook, WhatIf
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, Job, JobState
from cockpit.model.mounts import DatasetSource
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.reasons import Explanation, NotEnoughFree, Resource
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestOutcome
from cockpit.model.spec import Access, NodeSpec
from cockpit.model.staging import Progress, StagedCopy
from cockpit.protocol import messages
from cockpit.protocol.frames import HEADER, Answer, Hello, RequestFrame, frame, raw
from cockpit.protocol.pages import AllLoaded, JobsChange, page_of, pieces
from tests.builders import ANN, HOUR, NOON, SECOND, a_node, a_spec
from tests.forged import arguments_for

DATA = Path(__file__).parent / "data"

_SLICE = CardSlice(card=0, slot=1, milli=250)
_ALLOCATION = Allocation(rank=0, node=NodeName("n1"), cpus=1, memory_mib=1024, slices=(_SLICE,))
_JOB = Job(
    id=JobId(12),
    spec=a_spec("kept", card_milli=250, card_models=("A100",), terminal=True, env={"A": "ä"}),
    submitter=ANN,
    project="ann",
    submitted_at=NOON,
    state=JobState.ERROR,
    state_since=Millis(NOON + SECOND),
    attempt=Attempt(
        number=1,
        spec_index=0,
        placement=(_ALLOCATION,),
        placed_at=NOON,
        replicas=(Replica(rank=0, started_at=NOON, ended_at=Millis(NOON + SECOND), exit=ExitStatus(code=3)),),
    ),
    exit=ExitStatus(code=3),
    end_cause=EndCause.EXIT,
    ended_at=Millis(NOON + SECOND),
    held_until=Millis(NOON + HOUR),
    version=7,
)
_REASON = NotEnoughFree(Resource.CARDS, 4, ("A100",), 1, 0, ())
_QUEUED = Job(
    id=JobId(13), spec=a_spec("waits"), submitter=ANN, project="ann", submitted_at=NOON, state_since=NOON, version=8
)
_PAGE = page_of([job_row(_JOB, None), job_row(_QUEUED, _REASON)], {"error": 1, "queued": 1})
_RECORD = events.EventRecord(
    seq=3, at=NOON, actor="ann", origin="socket", request="1001:9f86", body=events.JobHeld(JobId(12), "ann")
)
_STATUS = view.EngineStatus(
    running=True,
    pid=4711,
    socket="/run/user/1001/cockpit-cluster/engine.sock",
    state_folder="/home/ann/.local/state/cockpit-cluster",
    version="0.1.0",
    protocol="1.0",
    system=False,
    started_at=NOON,
    jobs=2,
    containers="user overlay",
    trouble=("the disk is full",),
)
_OVERVIEW = view.Overview(
    cluster="n1",
    jobs_by_state={"queued": 1},
    held=1,
    nodes=1,
    cpus=8,
    used_cpus=1,
    memory_mib=64_000,
    used_memory_mib=1024,
    card_milli=1000,
    used_card_milli=250,
)
_NODE = view.NodeRow(
    node=a_node(cards=1),
    used_cpus=1,
    used_memory_mib=1024,
    used_card_milli=250,
    used_cards=1,
    slices=(view.SliceUse(card=0, slot=1, milli=250, job=JobId(12), name="kept", user="ann", held=True),),
    jobs=(JobId(12),),
)
_HOLD = view.HoldRow(
    job=JobId(12),
    name="kept",
    user="ann",
    state=JobState.ERROR,
    exit_code=3,
    nodes=(NodeName("n1"),),
    ended_at=NOON,
    held_until=Millis(NOON + HOUR),
    keeps_card_milli=0,
)
_DETAIL = jobdetail.JobDetail(
    row=job_row(_QUEUED, _REASON),
    job=_QUEUED,
    explanation=Explanation(job=JobId(13), reason=_REASON, position=1, ahead=(JobId(12),)),
    events=(_RECORD,),
    log_tail="last line",
)
_PRIORITIES = view.Priorities(
    kind=PriorityKind.MULTIFACTOR,
    weights=Weights(age=1000, tres={"cpu": 2.0}),
    rows=(
        view.PriorityRow(
            job=JobId(13),
            name="waits",
            user="ann",
            account="nlp",
            qos="normal",
            partition="gpu",
            position=1,
            breakdown=Breakdown(JobId(13), "gpu", 400, (Part(FactorName.AGE, 0.5, 1000, 500.0),), nice=100),
            position_before=2,
            total_before=7,
            task=ArrayTask(JobId(13), 4),
        ),
    ),
)
_OUTLOOK = Outlook(
    job=JobId(13),
    name="waits",
    position=2,
    explanation=_DETAIL.explanation,
    forecast=Forecast(likely_at=NOON, latest_at=Millis(NOON + HOUR), after=(AwaitedJob(JobId(12), NOON),)),
    what_ifs=(WhatIf(Change.CARDS, "4", "2", _QUEUED.spec, Forecast(now=True, likely_at=NOON)),),
    named=(HoldingJob(JobId(12), "kept", "ann", running=True, nodes=1, cpus=1, memory_mib=1024, card_milli=250),),
)

_ANN = Association(account="vision", user="ann", priority=0)

ANSWERS: dict[str, Any] = {
    "status": _STATUS,
    "overview": _OVERVIEW,
    "jobs": _PAGE,
    "subscribe": _PAGE,
    "subscribe-loaded": AllLoaded(),
    "subscribe-change": JobsChange(9, page_of([]), ((12, 9, {4: "stopped", 9: None}),), (13,)),
    "subscribe-resync": JobsChange(9, page_of([]), resync=True),
    "job": _DETAIL,
    "priorities": _PRIORITIES,
    "explain": _OUTLOOK,
    "starts": [ExpectedStart(JobId(13), NOON)],
    "predict": [_OUTLOOK],
    "nodes": [_NODE],
    "holds": [_HOLD],
    "reservations": [
        Reservation(name="upkeep", nodes=(NodeName("n1"),), start_at=NOON, end_at=NOON + HOUR, maintenance=True)
    ],
    "events": next(iter(pieces([_RECORD]))),
    "wait": _JOB,
    "logs": asking.LogChunk(b"\x00\xff line\n", 4, ended=True),
    "search_log": asking.LogMatches(((4, 2),), 1, 0, 5, 11),
    "submit": messages.Submitted((12, 13)),
    "request": RequestOutcome(known=True, op="submit", at=NOON, jobs=(12, 13)),
    "rules": Cluster(partitions=(Partition(name="a4", pools=("a4",), billing_weights={"cpu": 1.0}),), mutable=False),
    "accounts": view.AccountsShown(
        (
            view.AccountRow(
                Association(account="vision", user="ann", priority=0), depth=2, used=1.5, queued=1, running=0
            ),
        ),
        (Qos(name="high", priority=100),),
    ),
    "fleet": fleetrow.FleetShown(
        jobs=(
            fleetrow.FleetJobRow(
                job=JobId(12),
                name="kept",
                user="ann",
                cluster="west",
                fleet_state="running",
                state="Running",
                created_at=NOON,
                adopted=True,
                own="7",
                order="f1-12-1",
                replicas=2,
                ready=1,
                heard_at=NOON,
            ),
        ),
        pods=(
            fleetrow.FleetPodRow(
                job=JobId(12),
                name="kept-0",
                cluster="west",
                ready=1,
                containers=1,
                status="Running",
                restarts=0,
                created_at=NOON,
                rank=0,
                node="n1",
                own="7",
            ),
        ),
    ),
    "own_object": fleetrow.MemberObject(cluster="west", own="7", form="json", text="{}"),
    "snapshot": b"a snapshot's first piece",
    "queues": view.QueuesShown(
        (
            view.QueueRow(
                kind=view.QueueKind.QUOTA,
                path="root/child-2",
                name="root-child-2-v5zxz",
                level=1,
                since=NOON,
                waiting=2,
                running=1,
                used={"cpu": 4000},
                min={"cpu": 2000},
                max={"cpu": 8000},
                max_jobs=1,
                projects=("default",),
            ),
        ),
        "quotas",
    ),
    "accounting": [
        EndedJob(
            row=job_row(_JOB, None),
            attempts=2,
            elapsed_ms=HOUR,
            cpu_held_ms=4 * HOUR,
            card_milli_ms=500 * HOUR,
            cpu_ms=3 * HOUR,
            peak_memory_mib=900,
            card_percent=81,
        )
    ],
    "spending": Spending(
        (NOON, Millis(NOON + HOUR)), ((UsageSum("ann", "vision", "p", "high", 500 * HOUR, 4 * HOUR),),)
    ),
    "catalogue": CatalogueShown(
        (
            EntryRow(
                DatasetEntry(
                    name="corpus",
                    project="nlp",
                    owner="ann",
                    access=Access.RO,
                    about="ä",
                    source=DatasetSource.FAVORITE,
                    versions={"v1": "/data/corpus/1"},
                ),
                Access.RW,
            ),
            EntryRow(SpecEntry(name="big", access=Access.RO, spec=NodeSpec(cpus=8, card_milli=1000)), Access.RO),
        ),
        admin=True,
        projects=("nlp",),
    ),
    "staged": [
        StagedCopy(
            key="4f2a",
            what="dataset",
            source="/data/cats",
            size=1 << 31,
            users=("ann",),
            made_at=NOON,
            used_at=Millis(NOON + HOUR),
            jobs=(JobId(12),),
            progress=Progress(1 << 30, 1 << 31, 1 << 28),
        )
    ],
    "set_weights": view.WeightsSet(Weights(age=1000, tres={"cpu": 5.0}), "/etc/cockpit-cluster/cluster.toml"),
    "extend_hold": messages.HeldUntil(NOON + HOUR),
    "shell": asking.ShellOpened(terminal=True, kept=True, remounted=False, cards_freed=True),
    **dict.fromkeys(
        (
            "edit",
            "cancel",
            "hold",
            "release",
            "suspend",
            "resume",
            "requeue",
            "unblock",
            "delete",
            "end_hold",
            "set_priority",
            "set_time_limit",
            "make_reservation",
            "end_reservation",
            "drain_node",
            "resume_node",
            "unstage",
            "stop",
            "change_accounts",
            "change_catalogue",
            "apply_quota",
            "remove_quota",
        )
    ),
}
"""What each operation answers, by its name; what follows a dash is one of several messages."""

STREAMED = ("jobs", "subscribe", "priorities", "events", "snapshot")


def frames() -> dict[str, bytes]:
    """Name → frame, as today's code speaks it."""
    hello = Hello(
        protocol=(1, 0),
        version="0.1.0",
        capabilities=("jobs", "shell"),
        pid=4711,
        state_folder="/var/lib/cockpit-cluster",
    )
    refusal = Refusal(RefusalKind.INVALID, "cards: there are not so many", (("specs[0].cards", _REASON),))
    spoken = {"hello": hello, "refusal": Answer(7, no=refusal), "last": Answer(7)}
    for name, answer in ANSWERS.items():
        fds = 2 if name == "shell" else 0
        spoken[f"answer-{name}"] = Answer(7, raw(answer), last=name.partition("-")[0] not in STREAMED, fds=fds)
    for operation in {name.partition("-")[0] for name in ANSWERS}:
        arguments = raw(arguments_for(operation, 12))
        spoken[f"request-{operation}"] = RequestFrame(7, operation, arguments, "9f86d081")
    return {name: frame(message) for name, message in spoken.items()}


def recorded() -> dict[str, bytes]:
    """Name → frame, as it was once recorded."""
    return {file.stem: bytes.fromhex(file.read_text()) for file in sorted(DATA.glob("*.hex"))}


def body_of(encoded: bytes) -> bytes:
    """Without the header, which must be right."""
    (length,) = HEADER.unpack(encoded[: HEADER.size])
    assert length == len(encoded) - HEADER.size
    return encoded[HEADER.size :]


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for name, encoded in frames().items():
        file = DATA / f"{name}.hex"
        if not file.exists():
            digits = encoded.hex()
            file.write_text("".join(f"{digits[start : start + 96]}\n" for start in range(0, len(digits), 96)))


if __name__ == "__main__":
    main()
