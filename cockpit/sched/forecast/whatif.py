"""Makes the what-ifs of a job: specs that each change one thing, and might start sooner."""

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
"""The shortest time limit that is proposed, in seconds."""
MOST_PLACES = 4
"""The number of other partitions, and of other pools, that are tried."""
ANY = ""


class Candidate(msgspec.Struct, frozen=True):
    """A job spec with one thing changed; the fields are those of `WhatIf`."""

    change: Change
    before: str
    after: str
    spec: JobSpec
    named: bool = False
    """Whether it satisfies exactly the bound that the job's reason names."""


def candidates(snapshot: Snapshot, job: Job, reserved_at: Millis | None) -> Iterator[Candidate]:
    """Yield at most some twenty what-ifs, in this order: fewer cards, fewer nodes, a shorter time limit, other
    partitions, any card model, other pools, a higher priority. `reserved_at`: the reserved moment of the first waiting
    job, if it is known."""
    spec = job.spec
    yield from _fewer_cards(spec)
    yield from _fewer_nodes(spec)
    yield from _shorter(spec, snapshot.now, reserved_at)
    yield from _other_partitions(snapshot, job)
    yield from _other_cards(spec)
    yield from _other_pools(snapshot, spec)
    yield from _more_urgent(job)


def _fewer_cards(spec: JobSpec) -> Iterator[Candidate]:
    """Yield the job with fewer cards on each node, in every alternative."""
    # spread tasks have cards of their own (`TaskSpread`), which are not a number for each node
    most = max(each.whole_cards for each in spec.specs)
    for fewer in _halves(most) if spec.spread is None else ():
        specs = tuple(replace(each, card_milli=min(each.card_milli, fewer * WHOLE_CARD)) for each in spec.specs)
        yield Candidate(Change.CARDS, str(most), str(fewer), replace(spec, specs=specs))


def _fewer_nodes(spec: JobSpec) -> Iterator[Candidate]:
    pins = len(spec.node_names)
    for fewer in _halves(spec.nodes) if spec.spread is None else ():
        # a job that names nodes gets no others, so it cannot have more nodes than names
        if not pins or fewer <= pins:
            yield Candidate(Change.NODES, str(spec.nodes), str(fewer), replace(spec, nodes=fewer))


def _shorter(spec: JobSpec, now: Millis, reserved_at: Millis | None) -> Iterator[Candidate]:
    """Yield the time until the first waiting job starts, in whole minutes; and half the time limit."""
    # whole minutes, rounded down: the job must be gone by the reserved moment
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
    """Yield the job with any card model, if it asks for certain ones."""
    models = dict.fromkeys(model for each in spec.specs for model in each.card_models)
    if models:
        # alternatives that differed only in their models become one
        specs = tuple(dict.fromkeys(replace(each, card_models=()) for each in spec.specs))
        yield Candidate(Change.SPEC, ",".join(models), ANY, replace(spec, specs=specs))


def _other_pools(snapshot: Snapshot, spec: JobSpec) -> Iterator[Candidate]:
    if spec.pool is None:
        return
    pools = sorted({node.pool for node in snapshot.nodes.values()} - {spec.pool})
    for pool in pools[:MOST_PLACES]:
        yield Candidate(Change.POOL, spec.pool, pool, replace(spec, pool=pool, pool_nodes=()))


def _more_urgent(job: Job) -> Iterator[Candidate]:
    # a QOS that the job names wins over the word, so that the word alone would change nothing
    spec = job.spec
    if spec.priority is PriorityWord.NORMAL and spec.qos is None:
        changed = replace(spec, priority=PriorityWord.URGENT)
        yield Candidate(Change.PRIORITY, spec.priority, changed.priority, changed)


def _halves(count: int) -> Sequence[int]:
    """Return a half, a quarter, and one."""
    return [each for each in dict.fromkeys((count // 2, count // 4, 1)) if 1 <= each < count]
