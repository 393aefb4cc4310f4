"""Makes what-ifs that satisfy exactly the bound that a reason names: a shorter time limit, fewer CPUs, fewer nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.forecast import Change
from cockpit.model.ids import Millis
from cockpit.model.reasons import (
    BeginsLater,
    ClusterShort,
    InReservation,
    LimitReached,
    NeverFits,
    NoAlternative,
    NodesReserved,
    NotEnoughFree,
    PartitionRefuses,
    PartitionRule,
    QuotaFull,
    Reason,
    Resource,
    WouldDelay,
)
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec
from cockpit.sched.forecast.whatif import Candidate

_RESOURCES = {"cpu": Resource.CPUS, "mem": Resource.MEMORY, "gres/gpu": Resource.CARDS}
_SIZES = (PartitionRule.MIN_NODES, PartitionRule.MAX_NODES)


class _Request(NamedTuple):
    spec: JobSpec
    now: Millis


def named_bounds(spec: JobSpec, reasons: Iterable[Reason], now: Millis) -> Iterator[Candidate]:
    """Yield a what-if for each bound that a reason names and that the job itself could satisfy, each once."""
    # several partitions or alternatives may name the same bound
    seen: set[tuple[Change, str]] = set()
    for reason in reasons:
        for each in _bounds(reason, _Request(spec, now)):
            if (each.change, each.after) not in seen:
                seen.add((each.change, each.after))
                yield each


@singledispatch
def _bounds(_reason: object, _request: _Request) -> Iterator[Candidate]:
    yield from ()


@_bounds.register
def _(reason: NoAlternative, request: _Request) -> Iterator[Candidate]:
    for one in reason.specs:
        yield from _bounds(one, request)


@_bounds.register
def _(reason: PartitionRefuses, request: _Request) -> Iterator[Candidate]:
    if reason.rule is PartitionRule.MAX_TIME:
        yield from _limit(request.spec, int(reason.allowed))
    elif reason.rule in _SIZES:
        yield from _nodes(request.spec, int(reason.allowed))


@_bounds.register
def _(reason: WouldDelay, request: _Request) -> Iterator[Candidate]:
    yield from _limit(request.spec, (reason.reserved_at - request.now) // 1000)


@_bounds.register
def _(reason: NodesReserved, request: _Request) -> Iterator[Candidate]:
    yield from _limit(request.spec, (reason.start_at - request.now) // 1000)


@_bounds.register
def _(reason: InReservation, request: _Request) -> Iterator[Candidate]:
    if reason.end_at is not None:
        since = max(request.now, reason.start_at or request.now)
        yield from _limit(request.spec, (reason.end_at - since) // 1000)


@_bounds.register
def _(reason: BeginsLater, request: _Request) -> Iterator[Candidate]:
    # the same reason is used for the rest after memory ran short, which no change of the job ends
    if request.spec.begin_at == reason.begin_at:
        yield Candidate(Change.BEGIN, str(reason.begin_at), "", replace(request.spec, begin_at=None), named=True)


@_bounds.register
def _(reason: NeverFits, request: _Request) -> Iterator[Candidate]:
    if reason.resource is None:
        yield from _nodes(request.spec, reason.most)
    else:
        yield from _each(request.spec, reason.resource, reason.most)


@_bounds.register
def _(reason: NotEnoughFree, request: _Request) -> Iterator[Candidate]:
    yield from _nodes(request.spec, reason.nodes_with_room)
    missing = reason.nodes_wanted - reason.nodes_with_room
    # the nodes that must fit in addition: the nearest ones, as many as are missing
    short = reason.nearest[:missing]
    if 0 < missing == len(short) and len({each.resource for each in short}) == 1:  # else no one bound is enough
        yield from _each(request.spec, short[0].resource, min(each.free for each in short))


@_bounds.register
def _(reason: ClusterShort, request: _Request) -> Iterator[Candidate]:
    yield from _each(request.spec, reason.resource, reason.free // request.spec.least_nodes)


@_bounds.register
def _(reason: QuotaFull, request: _Request) -> Iterator[Candidate]:
    for amount in _remaining(reason):
        yield from _in_all(request.spec, reason, amount)


@_bounds.register
def _(reason: LimitReached, request: _Request) -> Iterator[Candidate]:
    seconds = request.spec.time_limit_seconds
    if reason.limit in ("MaxWall", "GrpWall", "GrpTRESMins"):  # what is asked grows with the limit
        for amount in _remaining(reason) if reason.asked else ():
            yield from _limit(request.spec, int(amount * seconds / reason.asked))
    elif reason.limit == "MaxTRESPerNode":
        yield from _in_all(request.spec, reason, reason.allowed * request.spec.least_nodes)
    elif reason.limit.startswith("Min"):
        yield from _more(request.spec, reason.resource, reason.allowed)
    elif reason.resource:
        for amount in _remaining(reason):
            yield from _in_all(request.spec, reason, amount)


def _remaining(reason: LimitReached | QuotaFull) -> Iterator[float]:
    """Yield what is left of the limit now, and the whole limit where the job asks for more than that."""
    if reason.allowed > reason.used:
        yield reason.allowed - reason.used
    if reason.used and reason.never:
        yield reason.allowed


def _limit(spec: JobSpec, seconds: int) -> Iterator[Candidate]:
    limit = spec.time_limit_seconds
    if 1 <= seconds < limit:
        yield Candidate(Change.LIMIT, str(limit), str(seconds), replace(spec, time_limit_seconds=seconds), named=True)


def _nodes(spec: JobSpec, nodes: int) -> Iterator[Candidate]:
    if nodes >= 1 and nodes != spec.nodes and spec.elastic is None and not spec.helpers and not spec.spread:
        yield Candidate(Change.NODES, str(spec.nodes), str(nodes), replace(spec, nodes=nodes), named=True)


def _in_all(spec: JobSpec, reason: LimitReached | QuotaFull, amount: float) -> Iterator[Candidate]:
    """Reduce the whole job to this amount of a TRES: by fewer nodes, or by less on each node."""
    count, resource = spec.least_nodes, reason.resource
    if resource == "node":
        yield from _nodes(spec, int(amount))
        return
    known = _RESOURCES.get(resource.partition(":")[0])
    if known is None:
        return
    # by the alternative that needs most: a number of nodes that satisfies it satisfies all
    used = max(_amount(known, each) for each in spec.specs)
    unit = WHOLE_CARD if known is Resource.CARDS else 1
    of_each_job = isinstance(reason, LimitReached) and reason.limit.startswith("MaxTRESPer") and not reason.used
    if spec.exclusive and (not of_each_job or reason.asked * unit > used * count):  # all of its nodes counts
        yield from _each(spec, Resource.NODE, 0) if used * count <= amount * unit else ()
        return
    if used and count > 1:
        yield from _nodes(spec, min(count, int(amount * unit / used)))
    if known is Resource.CARDS and any(each.shares_a_card for each in spec.specs):
        yield from _each(spec, Resource.CARD_SHARE, int(amount * WHOLE_CARD / count))
    else:
        yield from _each(spec, known, int(amount / count))


def _more(spec: JobSpec, resource: str, amount: float) -> Iterator[Candidate]:
    """Raise the whole job to at least this amount of a TRES."""
    count = spec.least_nodes
    if resource == "node":
        # rounded up: a minimum must be reached
        yield from _nodes(spec, -int(-amount // 1))
    elif (known := _RESOURCES.get(resource.partition(":")[0])) is not None:
        yield from _each(spec, known, -int(-amount // count), max)


def _amount(resource: Resource, spec: NodeSpec) -> int:
    match resource:
        case Resource.CPUS:
            return spec.cpus
        case Resource.MEMORY:
            return spec.memory_mib
        case _:
            return spec.card_milli


def _each(
    spec: JobSpec, resource: Resource, bound: int, chosen: Callable[[int, int], int] = min
) -> Iterator[Candidate]:
    """Set a resource on each node to a bound, in its unit, for every alternative."""
    if resource is Resource.NODE:
        if spec.exclusive:
            yield Candidate(Change.EXCLUSIVE, "", "", replace(spec, exclusive=False), named=True)
        return
    if bound < 1:
        return
    change, field, unit = _FIELDS[resource]
    before = max(getattr(each, field) for each in spec.specs)
    # every alternative is bounded, since the scheduler chooses among them
    specs = tuple(replace(each, **{field: chosen(getattr(each, field), bound * unit)}) for each in spec.specs)
    after = max(getattr(each, field) for each in specs)
    if specs != spec.specs and before != after:
        before_text, after_text = str(before // unit), str(after // unit)
        yield Candidate(change, before_text, after_text, replace(spec, specs=specs), named=True)


_FIELDS: dict[Resource, tuple[Change, str, int]] = {
    Resource.CPUS: (Change.CPUS, "cpus", 1),
    Resource.MEMORY: (Change.MEMORY, "memory_mib", 1),
    Resource.CARDS: (Change.CARDS, "card_milli", WHOLE_CARD),
    Resource.CARD_SHARE: (Change.SHARE, "card_milli", 1),
}
"""The kind of change, the field of the spec, and the amount of the field that is one unit, by resource."""
