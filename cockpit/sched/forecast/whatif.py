"""What a job could ask for instead: a few specs, each of which changes one thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.model.forecast import Change
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.spec import WHOLE_CARD, JobSpec, PriorityWord
from cockpit.sched.snapshot import Snapshot

LEAST_SECONDS = 300
"""A shorter limit is no use to anybody."""
MOST_PLACES = 4
"""Other partitions, and other pools, that are tried."""
ANY = ""


class Candidate(msgspec.Struct, frozen=True):
    """The job with one thing changed; as in `WhatIf`."""

    change: Change
    before: str
    after: str
    spec: JobSpec
    named: bool = False
    """It keeps the very bound that the job's reason names."""


def candidates(snapshot: Snapshot, job: Job, reserved_at: Millis | None) -> Iterator[Candidate]:
    """At most some twenty. `reserved_at`: when the first job that waits has its place, if that is known."""
    spec = job.spec
    yield from _fewer_cards(spec)
    yield from _fewer_nodes(spec)
    yield from _shorter(spec, snapshot.now, reserved_at)
    yield from _other_partitions(snapshot, job)
    yield from _other_cards(spec)
    yield from _other_pools(snapshot, spec)
    yield from _more_urgent(job)


def _fewer_cards(spec: JobSpec) -> Iterator[Candidate]:
    """Of each node, as many for every alternative."""
    most = max(each.whole_cards for each in spec.specs)
    for fewer in _halves(most) if spec.spread is None else ():
        specs = tuple(replace(each, card_milli=min(each.card_milli, fewer * WHOLE_CARD)) for each in spec.specs)
        yield Candidate(Change.CARDS, str(most), str(fewer), replace(spec, specs=specs))


def _fewer_nodes(spec: JobSpec) -> Iterator[Candidate]:
    pins = len(spec.node_names)
    for fewer in _halves(spec.nodes) if spec.spread is None else ():
        if not pins or fewer <= pins:
            yield Candidate(Change.NODES, str(spec.nodes), str(fewer), replace(spec, nodes=fewer))


def _shorter(spec: JobSpec, now: Millis, reserved_at: Millis | None) -> Iterator[Candidate]:
    """What fits before the first job that waits, in whole minutes; and half of it."""
    gap = (reserved_at - now) // 60_000 * 60 if reserved_at is not None else 0
    limit = spec.time_limit_seconds
    for seconds in dict.fromkeys((gap, limit // 120 * 60)):
        if LEAST_SECONDS <= seconds < limit:
            changed = replace(spec, time_limit_seconds=seconds)
            yield Candidate(Change.LIMIT, str(limit), str(seconds), changed)


def _other_partitions(snapshot: Snapshot, job: Job) -> Iterator[Candidate]:
    others = [each.name for each in snapshot.cluster.partitions if each.name not in job.partitions]
    for name in others[:MOST_PLACES]:
        yield Candidate(Change.PARTITION, ",".join(job.partitions), name, replace(job.spec, partitions=(name,)))


def _other_cards(spec: JobSpec) -> Iterator[Candidate]:
    """Any model, where it asks for some."""
    models = dict.fromkeys(model for each in spec.specs for model in each.card_models)
    if models:
        specs = tuple(dict.fromkeys(replace(each, card_models=()) for each in spec.specs))
        yield Candidate(Change.SPEC, ",".join(models), ANY, replace(spec, specs=specs))


def _other_pools(snapshot: Snapshot, spec: JobSpec) -> Iterator[Candidate]:
    if spec.pool is None:
        return
    pools = sorted({node.pool for node in snapshot.nodes.values()} - {spec.pool})
    for pool in pools[:MOST_PLACES]:
        yield Candidate(Change.POOL, spec.pool, pool, replace(spec, pool=pool, pool_nodes=()))


def _more_urgent(job: Job) -> Iterator[Candidate]:
    spec = job.spec
    if spec.priority is PriorityWord.NORMAL and spec.qos is None:
        changed = replace(spec, priority=PriorityWord.URGENT)
        yield Candidate(Change.PRIORITY, spec.priority, changed.priority, changed)


def _halves(count: int) -> Sequence[int]:
    """A half, a quarter, and one."""
    return [each for each in dict.fromkeys((count // 2, count // 4, 1)) if 1 <= each < count]
