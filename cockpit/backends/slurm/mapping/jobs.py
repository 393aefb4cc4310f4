"""One record of squeue as jobs: one, or one for each task of an array that still waits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import states, values
from cockpit.backends.slurm.mapping.dependencies import conditions
from cockpit.backends.slurm.mapping.holding import held
from cockpit.backends.slurm.mapping.hostlist import hosts, numbers
from cockpit.backends.slurm.mapping.ids import job_id
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import ENDED, ArrayTask, Attempt, Job, JobState, Replica, Submitter, Suspension
from cockpit.model.node import Allocation
from cockpit.model.spec import DAY_SECONDS, WHOLE_CARD, Array, HomeAccess, JobSpec, Mode, NodeSpec

NO_LIMIT_SECONDS = 365 * DAY_SECONDS
"""Stands for a job without a time limit."""

Fields = dict[str, str]


class Listed(NamedTuple):
    """A job as squeue tells it, and what the model's job has no place for."""

    job: Job
    code: str
    """Why it waits, by Slurm's word."""
    state: str
    """Slurm's word."""
    priority: int | None
    starts_at: Millis | None
    """While it waits: when the cluster thinks that it starts."""


def listed(fields: Fields, zone: tzinfo | None, shards_per_card: int = 0) -> Iterator[Listed]:
    """`zone`: the cluster's; None: this machine's. `shards_per_card`: into how many a card is cut (gres/shard)."""
    state = states.word(fields["State"])
    nodes = hosts(values.text(fields.get("NodeList", "")))
    kind = states.job_state(state, placed=bool(nodes))
    whole = held(_job(fields, zone, state, kind, nodes, shards_per_card), values.text(fields.get("Comment", "")))
    waits = kind is JobState.QUEUED
    more = (
        fields.get("Reason", ""),
        state,
        values.number(fields.get("PriorityLong", "")),
        values.moment(fields.get("StartTime", ""), zone) if waits else None,
    )
    for job in _tasks(whole, fields):
        yield Listed(job, *more)


def _tasks(whole: Job, fields: Fields) -> Iterator[Job]:
    array, tasks = values.number(fields.get("ArrayJobID", "")), fields.get("ArrayTaskID", "")
    if not array or not tasks[:1].isdigit():
        yield whole
        return
    indices, _, at_once = tasks.partition("%")
    every = numbers(indices)
    bounds = ArrayTask(JobId(array), 0, int(at_once) if at_once.isdigit() else 0, len(every), every[0], every[-1])
    for index in every:
        own = ArrayTask(bounds.array, index, bounds.at_once, bounds.count, bounds.first, bounds.last)
        yield with_array(whole, own)


def with_array(job: Job, task: ArrayTask) -> Job:
    """The same as that task of its array."""
    return replace(job, id=job_id(task.array, task.index), array=task)


def _job(
    fields: Fields, zone: tzinfo | None, state: str, kind: JobState, nodes: tuple[NodeName, ...], shards: int
) -> Job:
    def at(name: str) -> Millis | None:
        return values.moment(fields.get(name, ""), zone)

    spec = _spec(fields, at("EligibleTime"), at("SubmitTime"), shards)
    submitted = at("SubmitTime") or Millis(0)
    started, ended = (at("StartTime"), at("EndTime")) if kind is not JobState.QUEUED else (None, None)
    ended = ended if kind in ENDED else None
    partitions = values.names(fields["Partition"])
    waiting = conditions(values.text(fields.get("Dependency", "")))
    attempt = _attempt(fields, spec, nodes, started, ended, partitions) if nodes and started is not None else None
    return Job(
        id=job_id(values.number(fields["JobID"]) or 0),
        spec=spec,
        submitter=_submitter(fields),
        project=fields["Account"],
        submitted_at=submitted,
        state=kind,
        state_since=ended or started or submitted,
        held_by=_holder(fields["Reason"], state, fields["UserName"]) if kind is JobState.QUEUED else "",
        held_since=submitted,
        attempt=attempt,
        exit=states.exit_of(state, fields.get("exit_code", "")) if kind in ENDED else None,
        end_cause=states.end_cause(state),
        ended_at=ended,
        account=values.text(fields["Account"]),
        qos=values.text(fields["QOS"]),
        partitions=partitions,
        waits_for=waiting.failed[:1] + waiting.open,
        never=waiting.failed[0].job if waiting.failed else None,
        accrues_from=at("AccrueTime"),
        suspension=Suspension(by="") if kind is JobState.SUSPENDED else None,
    )


def _submitter(fields: Fields) -> Submitter:
    uid, gid = (values.number(fields.get(name, "")) or 0 for name in ("UserID", "GroupID"))
    return Submitter(UserName(fields["UserName"]), uid, gid, (gid,), "")


def _holder(reason: str, state: str, user: str) -> str:
    """Who holds it back."""
    if reason == "JobHeldUser":
        return user
    if reason in {"JobHeldAdmin", "JobHoldMaxRequeue", "ReservationDeleted"} or state in {
        "REQUEUE_HOLD",
        "SPECIAL_EXIT",
    }:
        return "an administrator" if reason == "JobHeldAdmin" else "Slurm"
    return ""


def _spec(fields: Fields, eligible: Millis | None, submitted: Millis | None, shards: int) -> JobSpec:
    nodes = max(1, values.number(fields["NumNodes"]) or 1)
    array = fields.get("ArrayTaskID", "")
    indices, _, at_once = array.partition("%")
    begin = eligible if fields["Reason"] == "BeginTime" or (eligible or 0) > (submitted or 0) + 60_000 else None
    seconds = values.seconds(fields["TimeLimit"])
    return JobSpec(
        name=fields["Name"],
        command=values.text(fields.get("Command", "")) or "(a script of standard input)",
        output=values.text(fields.get("STDOUT", "")) or values.text(fields.get("WorkDir", "")),
        nodes=nodes,
        mode=Mode.SLURM if nodes > 1 else None,
        specs=(_node_spec(fields.get("tres-alloc", ""), fields["NumCPUs"], nodes, shards),),
        node_names=hosts(values.text(fields.get("ReqNodes", ""))),
        exclusive=fields.get("OverSubscribe", "") in {"NO", "EXCLUSIVE"},
        time_limit_seconds=seconds or NO_LIMIT_SECONDS,
        home=HomeAccess.RW,
        account=values.text(fields["Account"]) or None,
        partitions=values.names(fields["Partition"]),
        qos=values.text(fields["QOS"]) or None,
        nice=_nice(fields.get("Nice", "")),
        begin_at=begin,
        dependencies=conditions(values.text(fields.get("Dependency", ""))).open,
        array=Array(numbers(indices), int(at_once) if at_once.isdigit() else 0) if array[:1].isdigit() else None,
        reservation=values.text(fields.get("Reservation", "")),
    )


def _nice(printed: str) -> int:
    figure = values.decimal(printed)
    return int(figure) if figure is not None else 0


@lru_cache(maxsize=4096)
def _node_spec(amounts: str, all_cpus: str, nodes: int, shards: int) -> NodeSpec:
    """Of thousands of jobs many ask for the same."""
    tres = values.tres(amounts)
    cpus = tres.get("cpu") or values.number(all_cpus) or 1
    models = tuple(name.partition(":")[2] for name in tres if name.startswith("gres/gpu:"))
    return NodeSpec(
        cpus=-int(-cpus // nodes),
        memory_mib=-int(-tres.get("mem", 0) // nodes),
        card_milli=_card_milli(tres, nodes, shards),
        card_models=models,
    )


def _card_milli(tres: dict[str, float], nodes: int, shards: int) -> int:
    """Per node. A share of a card is less than one; more shards than a card has count as whole ones."""
    cards = tres.get("gres/gpu") or sum(each for name, each in tres.items() if name.startswith("gres/gpu:"))
    if cards:
        return WHOLE_CARD * -int(-cards // nodes)
    share = WHOLE_CARD * tres.get("gres/shard", 0) / nodes / shards if shards else 0
    return int(share) if share < WHOLE_CARD else WHOLE_CARD * -int(-share // WHOLE_CARD)


def _attempt(
    fields: Fields,
    spec: JobSpec,
    nodes: tuple[NodeName, ...],
    started: Millis,
    ended: Millis | None,
    partitions: tuple[str, ...],
) -> Attempt:
    """One replica a node. What each node gives is known of the whole only: taken to be the same everywhere, until
    `placements` says more."""
    each = spec.specs[0]
    tres = values.tres(fields.get("tres-alloc", ""))
    restarts = values.number(fields.get("RestartCnt", "")) or 0
    return Attempt(
        number=1 + restarts,
        spec_index=0,
        placement=tuple(Allocation(rank, node, each.cpus, each.memory_mib) for rank, node in enumerate(nodes)),
        placed_at=started,
        replicas=tuple(Replica(rank=rank, started_at=started, ended_at=ended) for rank in range(len(nodes))),
        partition=partitions[0] if partitions else "",
        billing=tres.get("billing", 0.0),
    )
