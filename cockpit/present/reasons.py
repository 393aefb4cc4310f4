"""The table from a typed reason to its sentence, for the TUI, the command line and the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from functools import lru_cache
from itertools import groupby
from typing import Final, get_args

from cockpit.model.ids import Millis, NodeName
from cockpit.model.pod_reasons import GangIncomplete, Gated, PodsNotCreated, PodsStarting, QueueWaits, Unschedulable
from cockpit.model.reasons import (
    Held,
    NeverFits,
    NoAlternative,
    NodeShortfall,
    NoEligibleNode,
    NotEnoughFree,
    NotEvaluated,
    Reason,
    Resource,
    SchedulerReason,
    WouldDelay,
)
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.phrases import RESOURCE_NAMES, amount, bare_amount, listed
from cockpit.present.pod_reasons import pod_clauses
from cockpit.present.references import job_shown
from cockpit.present.rule_reasons import rule_clauses
from cockpit.present.safe import safe
from cockpit.present.slurm_reasons import slurm_clauses

REASON_TYPES: Final = tuple(str(kind.__struct_config__.tag) for kind in get_args(Reason))
"""The name of each type of reason in JSON."""


MOST_CAUSES: Final = 2
"""Largest number of different causes that a sentence about nodes out of service names; a node's page has the rest."""
START_UNKNOWN: Final = "its start is not known because of a defect in cockpit, which the engine's log records"
FAILED: Final = "could not be judged because of a defect in cockpit, which the engine's log records"
_NOT_EVALUATED = ("waits for the scheduler to look at it",)


@lru_cache(maxsize=4096)
def reason_sentence(reason: Reason, now: Millis, zone: tzinfo | None) -> str:
    """Return why a queued job does not start, in words without a full stop. `zone` None: this machine's.

    The sentences are cached: ten thousand queued jobs have few different reasons, and reasons cache their hashes.
    """
    return "; ".join(reason_clauses(reason, now, zone))


@lru_cache(maxsize=4096)
def reason_clauses(reason: Reason, now: Millis, zone: tzinfo | None) -> tuple[str, ...]:
    """Return the clauses of the sentence: what the job waits for, then the particulars."""
    match reason:
        case Held():
            since = f" since {clock(reason.since, now, zone)}" if reason.since is not None else ""
            return (f"held by {safe(reason.by)}{since}",)
        case WouldDelay():
            start = clock(reason.reserved_at, now, zone)
            return (f"would fit now, but would delay {job_shown(reason.ahead)}, which is to start by {start}",)
        case NotEnoughFree() | NeverFits() | NoEligibleNode() | NoAlternative():
            return tuple(_of_room(reason, now, zone))
        case SchedulerReason():
            return slurm_clauses(reason)
        case QueueWaits() | Unschedulable() | PodsNotCreated() | Gated() | PodsStarting() | GangIncomplete():
            return tuple(pod_clauses(reason, now, zone))
        case _:
            return _not_evaluated(reason) if isinstance(reason, NotEvaluated) else rule_clauses(reason, now, zone)


def _not_evaluated(reason: NotEvaluated) -> tuple[str, ...]:
    return (FAILED, safe(reason.failure)) if reason.failure else _NOT_EVALUATED


def _of_room(
    reason: NotEnoughFree | NeverFits | NoEligibleNode | NoAlternative, now: Millis, zone: tzinfo | None
) -> Iterable[str]:
    """Return the clauses of a reason about room on nodes."""
    match reason:
        case NotEnoughFree():
            return _not_enough_free(reason)
        case NeverFits():
            return _never_fits(reason)
        case NoEligibleNode():
            return _no_eligible_node(reason)
        case NoAlternative():
            return _no_alternative(reason, now, zone)


def _not_enough_free(reason: NotEnoughFree) -> list[str]:
    """Return the clauses: the request, the nodes with room, the nearest nodes, and preemption."""
    parts = [_wish(reason)]
    # For one node the nearest nodes below say the same with figures.
    if reason.nodes_wanted > 1:
        some = reason.nodes_with_room
        parts.append(f"{units.counted(some, 'node')} {_has(some)} room" if some else "no node has room")
    if reason.nearest:
        parts.append(", ".join(_shortfalls(reason)))
    # Points to a way out: a job may accept cards of several models.
    if reason.other_models_free:
        parts.append(
            f"{units.counted(reason.other_models_free, 'card')} of other models {_is(reason.other_models_free)} free"
        )
    if reason.preemptable is not None:
        parts.append(_preemptable(reason.preemptable))
    return [*parts, *_excluded(reason.excluded)]


def _excluded(nodes: tuple[tuple[NodeName, str], ...]) -> Iterator[str]:
    """Yield for each node why the job may not use it: `n1 is excluded for this job, whose check failed there: …`."""
    for node, because in nodes[:MOST_CAUSES]:
        yield f"{safe(node)} is excluded for this job, whose check failed there: {safe(because)}"
    if len(nodes) > MOST_CAUSES:
        yield f"{len(nodes) - MOST_CAUSES} more nodes are excluded for this job"


def _preemptable(count: int) -> str:
    if not count:
        # Without this a user who has the right to preempt would ask why it is not used.
        return "it may preempt none of the jobs there"
    return f"the {units.counted(count, 'job')} that it may preempt would not leave enough"


def _wish(reason: NotEnoughFree) -> str:
    if reason.resource is Resource.NODE:
        return f"waits for {amount(Resource.NODE, reason.nodes_wanted)}"
    where = "on one node" if reason.nodes_wanted == 1 else f"on each of {reason.nodes_wanted} nodes"
    return f"waits for {amount(reason.resource, reason.wanted, reason.card_models)} {where}"


def _shortfalls(reason: NotEnoughFree) -> Iterator[str]:
    """Yield what the nearest nodes lack; nodes that lack the same are named together."""
    for lack, nodes in groupby(reason.nearest, key=lambda node: _lack(node, reason)):
        names = [node.node for node in nodes]
        occupied = f"{_is(len(names))} occupied"
        yield f"{listed(names)} {f'{_has(len(names))} {lack}' if lack else occupied}"


def _lack(node: NodeShortfall, reason: NotEnoughFree) -> str:
    """Return what a node has free: `3 free`, `no CPU free`; empty where the whole node is in use."""
    if node.resource is Resource.NODE:
        return ""
    if node.resource is reason.resource:
        return f"{bare_amount(node.resource, node.free) if node.free else 'none'} free"
    return f"{amount(node.resource, node.free) if node.free else f'no {RESOURCE_NAMES[node.resource]}'} free"


def _no_alternative(reason: NoAlternative, now: Millis, zone: tzinfo | None) -> Iterator[str]:
    """Yield what each alternative spec waits for, then the particulars of each."""
    each = [reason_clauses(one, now, zone) for one in reason.specs]
    # Equal first clauses of several specs are said once.
    yield ", or ".join(dict.fromkeys(first for first, *_ in each))
    for number, (_, *more) in enumerate(each, 1):
        if more:
            yield f"spec {number}: {', '.join(more)}"


def _never_fits(reason: NeverFits) -> tuple[str, ...]:
    """Return the clauses for a request that exceeds the largest node, or the nodes that the job may use."""
    if reason.resource is None:
        big_enough = "none is" if reason.most == 0 else f"only {reason.most} {_is(reason.most)}"
        head = f"asks for {units.counted(reason.wanted, 'node')} of that size", f"{big_enough} big enough"
    else:
        wanted = amount(reason.resource, reason.wanted, reason.card_models)
        # There may be larger nodes that this job must not use: without the words the sentence would be false.
        whose = "it may use " if reason.taints or reason.dedicated else ""
        largest = f"the largest {whose}has {bare_amount(reason.resource, reason.most)}"
        none = f"no node {whose and 'that it may use '}has any"
        head = f"asks for {wanted} on one node", largest if reason.most else none
    return (*head, *_restrictions(reason, "others"), *_other_partitions(reason))


def _other_partitions(reason: NeverFits) -> Iterator[str]:
    """Yield that only nodes of other partitions would do."""
    if reason.partition:
        yield f"nodes outside partition {safe(reason.partition)} would do"


def _restrictions(reason: NeverFits | NoEligibleNode, which: str) -> Iterator[str]:
    """Yield to which jobs the nodes that would fit are restricted, by a pool or by taints."""
    if reason.dedicated:
        yield f"{which} are set apart for jobs that name pool {listed(reason.dedicated, 'or')}"
    if reason.taints:
        yield f"{which} are only for jobs that tolerate {listed(reason.taints)}"


def _no_eligible_node(reason: NoEligibleNode) -> tuple[str, ...]:
    request = _asked_of_nodes(reason) + (" for its launcher" if reason.launcher else "")
    # In this order: an exclusion and a node that is down pass by themselves, a taint by changing the job, and only then
    # there is no such node.
    if reason.excluded:
        return f"asks for {request}", *_excluded(reason.excluded)
    if reason.prices:
        present = listed(f"{safe(name)} costs {milli / 1000:g}" for name, milli in reason.prices)
        return f"asks for {request}", f"{present} now"
    if reason.out_of_service:
        return f"asks for {request}", _out_of_service(reason)
    if restrictions := tuple(_restrictions(reason, "such nodes")):
        return f"asks for {request}", *restrictions
    whose = f"partition {safe(reason.partition)}" if reason.partition else "the cluster"
    return f"asks for {request}", f"{whose} has no such node"


def _out_of_service(reason: NoEligibleNode) -> str:
    """Return why the nodes cannot be used: `n1 is drained: fan broken`, `n1 and n2 are out of service (down)`."""
    names, are = listed(reason.out_of_service), _is(len(reason.out_of_service))
    causes = [safe(each) for each in dict.fromkeys(reason.why_out)]
    if len(causes) == 1:
        return f"{names} {are} {causes[0]}"
    shown = "; ".join([*causes[:MOST_CAUSES], *(["…"] if len(causes) > MOST_CAUSES else [])])
    return f"{names} {are} out of service" + (f" ({shown})" if shown else "")


def _asked_of_nodes(reason: NoEligibleNode) -> str:
    """Return the requested properties of nodes in words, such as names, pool and labels."""
    parts = []
    if reason.pins:
        parts.append(f"{'node' if len(reason.pins) == 1 else 'nodes'} {listed(reason.pins)}")
    if reason.pool:
        parts.append(f"pool {safe(reason.pool)}")
    if reason.driver_version:
        parts.append(f"driver version {safe(reason.driver_version)}")
    if reason.labels:
        parts.append(f"{'label' if len(reason.labels) == 1 else 'labels'} {listed(reason.labels)}")
    return listed(parts) or "a node in service"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _has(number: int) -> str:
    return "has" if number == 1 else "have"
