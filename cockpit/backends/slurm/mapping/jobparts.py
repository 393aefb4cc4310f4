"""Converts the fields of one record into the parts of a job: spec, owner, times and placement."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.values import hosts, numbers
from cockpit.model.attempt import Attempt, Replica
from cockpit.model.cardmodels import instances_per_card
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Allocation
from cockpit.model.spec import (
    NO_LIMIT_SECONDS,
    WHOLE_CARD,
    Array,
    Dependency,
    DependencyKind,
    HomeAccess,
    JobSpec,
    Mode,
    NodeSpec,
)

# `12`, `12_3`, `12_*` (every task), `12+5` (a delay in minutes), each with `(unfulfilled)` or `(failed)` behind it.
_TARGET = re.compile(r"(\d+)(?:_(\d+|\*))?(?:\+\d+)?(?:\((\w+)\))?")
_KINDS = {
    # `after` is met by the start of the other job already, `afterburstbuffer` once its files were copied out as well
    # (sbatch(1)); of these moments the model has only its end.
    "after": DependencyKind.AFTER_ANY,
    "afterburstbuffer": DependencyKind.AFTER_ANY,
    **{str(kind): kind for kind in DependencyKind},
}


class Conditions(NamedTuple):
    """The dependencies of a job."""

    open: tuple[Dependency, ...] = ()
    """Dependencies that are not met yet."""
    failed: tuple[Dependency, ...] = ()
    """Dependencies that can never be met."""


@lru_cache(maxsize=4096)
def conditions(printed: str) -> Conditions:
    """Return the dependencies that squeue still lists; it leaves out those that are met."""
    waiting: list[Dependency] = []
    failed: list[Dependency] = []
    # Commas separate kinds as well as jobs of one kind; a kind begins with a letter. `?` separates alternatives.
    for part in re.split(r"[,?](?=[a-z])", printed):
        word, _, targets = part.partition(":")
        # `singleton(unfulfilled)` has no job, so that its state follows the kind itself.
        kind = _KINDS.get(re.sub(r"\(.*", "", word))
        if kind is None:
            continue
        if kind is DependencyKind.SINGLETON:
            waiting.append(Dependency(kind))
        for match in _TARGET.finditer(targets):
            task = int(match[2]) if match[2] and match[2] != "*" else None
            (failed if match[3] == "failed" else waiting).append(Dependency(kind, JobId(int(match[1])), task))
    return Conditions(tuple(waiting), tuple(failed))


NO_COMMAND = "(script from standard input)"

_ASKED = ("tres-per-node", "tres-per-job", "tres-per-task")
_TYPED = re.compile(r"gpu:([^:=,]+)[:=]\d")
Fields = dict[str, str]


def submitter(fields: Fields) -> Submitter:
    uid, gid = (values.number(fields.get(name, "")) or 0 for name in ("UserID", "GroupID"))
    # Home and further groups are not in any list, and nothing here runs as that user.
    return Submitter(UserName(fields["UserName"]), uid, gid, (gid,), "")


def holder(reason: str, state: str, user: str) -> str:
    """Return who holds the job."""
    # Slurm stores no name. JobHeldUser is a hold that the owner may release: mostly the owner's own, sometimes an
    # administrator's `scontrol uhold`.
    if reason == "JobHeldUser":
        return user
    if reason in {"JobHeldAdmin", "JobHoldMaxRequeue", "ReservationDeleted"} or state in {
        "REQUEUE_HOLD",
        "SPECIAL_EXIT",
    }:
        return "an administrator" if reason == "JobHeldAdmin" else "Slurm"
    return ""


def begin_at(reason: str, eligible: Millis | None, submitted: Millis | None) -> Millis | None:
    """Return the begin time that the owner set; None: at once."""
    # Without --begin EligibleTime is at most moments after SubmitTime; a minute tells the two apart.
    return eligible if reason == "BeginTime" or (eligible or 0) > (submitted or 0) + 60_000 else None


def command(fields: Fields) -> str:
    return values.text(fields.get("Command", "")) or NO_COMMAND


def output(fields: Fields) -> str:
    return values.text(fields.get("STDOUT", "")) or values.text(fields.get("WorkDir", ""))


def node_count(fields: Fields) -> int:
    return max(1, values.number(fields["NumNodes"]) or 1)


def spreads_freely(fields: Fields) -> bool:
    """Return whether a queued job runs on any number of nodes that fit its tasks (`-n 24` without -N). The node count
    in squeue is then that of Slurm's last plan, and the job's request gives the least. `spreads` has the rest."""
    # tres-alloc of a pending job is its request, whose node count is the smallest that sbatch allowed.
    least = values.tres(fields.get("tres-alloc", "")).get("node", 0)
    return 0 < least < node_count(fields)


def limit_seconds(fields: Fields) -> int:
    return values.seconds(fields["TimeLimit"]) or NO_LIMIT_SECONDS


def spec(fields: Fields, begin: Millis | None, shards: int) -> JobSpec:
    """Return the spec of a job as far as its record tells it. `shards`: per card (gres/shard)."""
    array = fields.get("ArrayTaskID", "")
    indices, _, at_once = array.partition("%")
    return JobSpec(
        name=fields["Name"],
        command=command(fields),
        output=output(fields),
        nodes=node_count(fields),
        mode=Mode.SLURM if node_count(fields) > 1 else None,
        specs=(node_spec(fields, shards),),
        node_names=hosts(values.text(fields.get("ReqNodes", ""))),
        exclusive=exclusive(fields),
        time_limit_seconds=limit_seconds(fields),
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


def exclusive(fields: Fields) -> bool:
    """Return whether the job has whole nodes. Before 26.05 OverSubscribe=NO means so; since then a field of its own
    does, and OverSubscribe=NO is the default."""
    whole = values.text(fields.get("Exclusive", ""))
    return whole in {"NODE", "TOPO"} if whole else fields.get("OverSubscribe", "") in {"NO", "EXCLUSIVE"}


def _nice(printed: str) -> int:
    figure = values.decimal(printed)
    return int(figure) if figure is not None else 0


def node_spec(fields: Fields, shards: int) -> NodeSpec:
    """Return the resources that the job requests of each node."""
    # tres-alloc names no model where the request's model is not tracked in AccountingStorageTRES; the request does.
    said = next((text for name in _ASKED if (text := values.text(fields.get(name, "")))), "")
    return _node_spec(fields.get("tres-alloc", ""), said, fields["NumCPUs"], node_count(fields), shards)


@lru_cache(maxsize=4096)
def _node_spec(amounts: str, request: str, all_cpus: str, nodes: int, shards: int) -> NodeSpec:
    """Return one shared spec for equal requests, since thousands of jobs often request the same.
    `request`: the text of the request, where the amounts do not name its kind."""
    tres = values.tres(amounts)
    # Only totals over all nodes are printed; divided and rounded up, each node has at least what the job needs of it.
    cpus = tres.get("cpu") or values.number(all_cpus) or 1
    models = tuple(name.partition(":")[2] for name in tres if name.startswith("gres/gpu:"))
    models = models or tuple(dict.fromkeys(each.lower() for each in _TYPED.findall(request)))
    return NodeSpec(
        cpus=-int(-cpus // nodes),
        memory_mib=-int(-tres.get("mem", 0) // nodes),
        card_milli=_card_milli(tres, nodes, shards, models),
        card_models=models,
    )


def _card_milli(tres: dict[str, float], nodes: int, shards: int, models: tuple[str, ...]) -> int:
    """Return thousandths of cards per node. A share is less than one card; more shards, or MIG instances, than a card
    has count as whole cards."""
    # `gres/gpu` is the sum over all models, where the cluster tracks it (AccountingStorageTRES).
    cards = tres.get("gres/gpu") or sum(each for name, each in tres.items() if name.startswith("gres/gpu:"))
    parts = min((instances_per_card(each) for each in models), default=0)
    if cards and not parts:
        return WHOLE_CARD * -int(-cards // nodes)
    if cards:
        return _whole_ones(WHOLE_CARD // parts * -int(-cards // nodes), parts * (WHOLE_CARD // parts))
    # gres/shard (since 22.05) counts shares; how many make a card is a property of the nodes.
    return _whole_ones(int(WHOLE_CARD * tres.get("gres/shard", 0) / nodes / shards), WHOLE_CARD) if shards else 0


def _whole_ones(milli: int, whole: int) -> int:
    return milli if milli < whole else WHOLE_CARD * -int(-milli // whole)


def attempt(
    fields: Fields,
    wanted: JobSpec,
    nodes: tuple[NodeName, ...],
    times: tuple[Millis, Millis | None],
    partitions: tuple[str, ...],
) -> Attempt:
    """Return the attempt with one replica per node. Only the totals are known, so they are divided evenly until
    `placements` has the figures per node. `times`: its start and its end."""
    each, (started, ended) = wanted.specs[0], times
    tres = values.tres(fields.get("tres-alloc", ""))
    return Attempt(
        number=attempt_number(fields),
        spec_index=0,
        # Rank is the place in NodeList, as SLURM_NODEID counts.
        placement=tuple(Allocation(rank, node, each.cpus, each.memory_mib) for rank, node in enumerate(nodes)),
        placed_at=started,
        replicas=tuple(Replica(rank=rank, started_at=started, ended_at=ended) for rank in range(len(nodes))),
        partition=partitions[0] if partitions else "",
        billing=tres.get("billing", 0.0),
    )


def attempt_number(fields: Fields) -> int:
    return 1 + (values.number(fields.get("RestartCnt", "")) or 0)
