"""The table from a typed reason to its sentence, for the TUI, the command line and the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from functools import lru_cache
from itertools import groupby
from typing import Final, get_args

from cockpit.model.fleet_placement import FleetWaits
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
from cockpit.present.phrases import RESOURCE_NAMES, Wording, amount, bare_amount, listed, wording
from cockpit.present.pod_reasons import pod_wording
from cockpit.present.references import job_shown
from cockpit.present.rule_reasons import rule_wording
from cockpit.present.safe import safe
from cockpit.present.slurm_reasons import slurm_wording

REASON_TYPES: Final = tuple(str(kind.__struct_config__.tag) for kind in get_args(Reason))
"""The name of each type of reason in JSON."""


MOST_CAUSES: Final = 2
"""Largest number of different causes that a sentence about nodes out of service names; a node's page has the rest."""
START_UNKNOWN: Final = "its start is not known because of a defect in cockpit, which the engine's log records"
FAILED: Final = "could not be judged because of a defect in cockpit, which the engine's log records"
_NOT_EVALUATED = wording("waits for the scheduler to look at it")


@lru_cache(maxsize=4096)
def reason_sentence(reason: Reason, now: Millis, zone: tzinfo | None) -> str:
    """Return why a queued job does not start, in words without a full stop. `zone` None: this machine's.

    The sentences are cached: ten thousand queued jobs have few different reasons, and reasons cache their hashes.
    """
    return "; ".join(reason_wording(reason, now, zone).clauses)


@lru_cache(maxsize=4096)
def reason_wording(reason: Reason, now: Millis, zone: tzinfo | None) -> Wording:
    """Return the short clause of lists and the clauses of the sentence: what the job waits for, then the
    particulars."""
    match reason:
        case Held():
            since = f" since {clock(reason.since, now, zone)}" if reason.since is not None else ""
            return wording(f"held by {safe(reason.by)}{since}", brief=f"held by {safe(reason.by)}")
        case WouldDelay():
            start = clock(reason.reserved_at, now, zone)
            ahead = job_shown(reason.ahead)
            sentence = f"would fit now, but would delay {ahead}, which is to start by {start}"
            return wording(sentence, brief=f"fits now, but would delay job {ahead}")
        case NotEnoughFree() | NeverFits() | NoEligibleNode() | NoAlternative():
            return _of_room(reason, now, zone)
        case SchedulerReason():
            return slurm_wording(reason)
        case (
            QueueWaits()
            | Unschedulable()
            | PodsNotCreated()
            | Gated()
            | PodsStarting()
            | GangIncomplete()
            | FleetWaits()
        ):
            return pod_wording(reason, now, zone)
        case _:
            return _not_evaluated(reason) if isinstance(reason, NotEvaluated) else rule_wording(reason, now, zone)


def _not_evaluated(reason: NotEvaluated) -> Wording:
    if not reason.failure:
        return _NOT_EVALUATED
    return wording(FAILED, safe(reason.failure), brief="could not be judged: a defect in cockpit")


def _of_room(
    reason: NotEnoughFree | NeverFits | NoEligibleNode | NoAlternative, now: Millis, zone: tzinfo | None
) -> Wording:
    """Return the words for a reason about room on nodes."""
    match reason:
        case NotEnoughFree():
            return _not_enough_free(reason)
        case NeverFits():
            return _never_fits(reason)
        case NoEligibleNode():
            return _no_eligible_node(reason)
        case NoAlternative():
            return _no_alternative(reason, now, zone)


def _not_enough_free(reason: NotEnoughFree) -> Wording:
    """Return the words: the request, the nodes with room, the nearest nodes, and preemption."""
    parts: list[str] = []
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
    return wording(_wish(reason), *parts, *_excluded(reason.excluded), brief=_need(reason))


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


def _need(reason: NotEnoughFree) -> str:
    """Return `_wish` in few words: `needs 4 A100 on one node`, `needs 2 nodes with 8 A100`."""
    if reason.resource is Resource.NODE:
        return f"needs {amount(Resource.NODE, reason.nodes_wanted)}"
    wanted = amount(reason.resource, reason.wanted, reason.card_models)
    several = f"needs {reason.nodes_wanted} nodes with {wanted}"
    return f"needs {wanted} on one node" if reason.nodes_wanted == 1 else several


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


def _no_alternative(reason: NoAlternative, now: Millis, zone: tzinfo | None) -> Wording:
    """Return what each alternative spec waits for, then the particulars of each."""
    each = [reason_wording(one, now, zone) for one in reason.specs]
    more = [
        f"spec {number}: {', '.join(words.clauses[1:])}" for number, words in enumerate(each, 1) if words.clauses[1:]
    ]
    # Equal first clauses of several specs are said once.
    first = ", or ".join(dict.fromkeys(words.clauses[0] for words in each))
    briefs = list(dict.fromkeys(words.brief for words in each))
    return wording(first, *more, brief=f"{''.join(briefs[:1])}{', or another spec' if briefs[1:] else ''}")


def _never_fits(reason: NeverFits) -> Wording:
    """Return the words for a request that exceeds the largest node, or the nodes that the job may use."""
    particulars = *_restrictions(reason, "others"), *_other_partitions(reason)
    if reason.resource is None:
        big_enough = "none is" if reason.most == 0 else f"only {reason.most} {_is(reason.most)}"
        head = f"asks for {units.counted(reason.wanted, 'node')} of that size", f"{big_enough} big enough"
        return wording(*head, *particulars, brief=f"{big_enough} big enough of the {reason.wanted} nodes it asks for")
    wanted = amount(reason.resource, reason.wanted, reason.card_models)
    # There may be larger nodes that this job must not use: without the words the sentence would be false.
    whose = "it may use " if reason.taints or reason.dedicated else ""
    largest = f"the largest {whose}has {bare_amount(reason.resource, reason.most)}"
    none = f"no node {whose and 'that it may use '}has any"
    head = f"asks for {wanted} on one node", largest if reason.most else none
    brief = f"no node {whose and 'that it may use '}has {wanted}"
    return wording(*head, *particulars, brief=brief)


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


def _no_eligible_node(reason: NoEligibleNode) -> Wording:
    request = _asked_of_nodes(reason) + (" for its launcher" if reason.launcher else "")
    asks = f"asks for {request}"
    # In this order: an exclusion and a node that is down pass by themselves, a taint by changing the job, and only then
    # there is no such node.
    if reason.excluded:
        return wording(
            asks, *_excluded(reason.excluded), brief=f"its check failed on {_few(each for each, _ in reason.excluded)}"
        )
    if reason.prices:
        present = listed(f"{safe(name)} costs {milli / 1000:g}" for name, milli in reason.prices)
        return wording(
            asks, f"{present} now", brief=f"{_few(name for name, _ in reason.prices)} costs more than it pays"
        )
    if reason.out_of_service:
        are = _is(len(reason.out_of_service))
        return wording(asks, _out_of_service(reason), brief=f"{_few(reason.out_of_service)} {are} out of service")
    if restrictions := tuple(_restrictions(reason, "such nodes")):
        pool = f"such nodes are only for pool {_few(reason.dedicated)}" if reason.dedicated else ""
        return wording(asks, *restrictions, brief=pool or f"such nodes have a taint: {_few(reason.taints)}")
    whose = f"partition {safe(reason.partition)}" if reason.partition else "the cluster"
    return wording(asks, f"{whose} has no such node", brief=f"{whose} has no {request}")


def _few(names: Iterable[str]) -> str:
    """Return up to two names, and of more the first and their number: `n01 and n02`, `n01 and 3 others`."""
    first, *others = names
    return listed([first, *others]) if len(others) < MOST_CAUSES else f"{safe(first)} and {len(others)} others"


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
