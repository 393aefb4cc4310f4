"""Rules for the worker pools, parameter servers and sweep of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from cockpit.model.rules.text import count_error, text_error
from cockpit.model.spec import MOST_HELPERS, Mode, Search
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, Sweep, WorkerPool

MOST_POOLS = 4
MOST_GBPS = 100_000
MOST_DISK_GIB = 1 << 20
SERVERS = 2
"""The position of parameter and reduction servers."""
REDUCTION_SERVER = "/vertex-ai-restricted/training/reductionserver:"
"""A part of the name of every image of Vertex AI's reduction server."""


MOST_PARAMETERS = 64
MOST_CHOICES = 10_000
MOST_TRIALS = 100_000
PARAMETER_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$"
_PARAMETER = re.compile(PARAMETER_PATTERN)
_CHOICE_BYTES = 1024


def sweep_checks(sweep: Sweep) -> Iterator[tuple[str, str | None]]:
    """Yield the checks of the fields of a sweep."""
    if not 1 <= len(sweep.parameters) <= MOST_PARAMETERS:
        yield "sweep.parameters", f"has {len(sweep.parameters)} parameters; give 1 to {MOST_PARAMETERS}"
    for name, choices in list(sweep.parameters.items())[:MOST_PARAMETERS]:
        at = f"sweep.parameters.{visible(name)}"
        if not _PARAMETER.fullmatch(name):
            yield at, "is no name of an option; use letters, digits, dots, dashes and _"
        yield at, count_error(len(choices), MOST_CHOICES, least=1)
        for index, choice in enumerate(choices[:MOST_CHOICES]):
            yield f"{at}[{index}]", text_error(choice, _CHOICE_BYTES, least=0)
    for field, most in (("max_trials", MOST_TRIALS), ("parallel", MOST_TRIALS), ("seed", (1 << 32) - 1)):
        amount = getattr(sweep, field)
        yield f"sweep.{field}", None if 0 <= amount <= most else f"{amount} is not between 0 and {most}"


def sweep_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the conflicts of a sweep with the job's other fields."""
    sweep = spec.sweep
    if sweep is None:
        return
    for field, given in (("array", spec.array), ("tasks", spec.tasks)):
        if given:
            yield "sweep", f"cannot be used with {field}: its trials are tasks themselves; remove one"
    if not spec.command:
        yield "sweep", "needs a command that its values are appended to"
    # Only multiplied, never listed: 64 parameters of 10 000 values each have 10^256 combinations.
    combinations = prod(map(len, sweep.parameters.values()))
    if not sweep.max_trials and combinations > MOST_TRIALS:
        yield "sweep.max_trials", f"is needed: there are {combinations} combinations, and at most {MOST_TRIALS} trials"
    if sweep.search is Search.RANDOM and not sweep.max_trials:
        yield "sweep.max_trials", "is needed for a random choice: it says how many are chosen"


def pool_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield each field that conflicts with the pools or the mode, with the error."""
    if spec.parameter_servers and spec.mode is not Mode.TENSORFLOW:
        yield "parameter_servers", "are TensorFlow's; write mode: tensorflow, or leave them out"
    if (spec.mode is Mode.WORKER_POOLS) != bool(spec.worker_pools):
        yield "worker_pools", "and mode: worker-pools require each other; write both, or neither"
    if not spec.helper_count and not spec.worker_pools:
        return
    path = "worker_pools" if spec.worker_pools else "parameter_servers"
    if spec.helper_count > MOST_HELPERS:
        yield path, f"come to {spec.helper_count} replicas beside the first; at most {MOST_HELPERS} are possible"
    for other, given in (("elastic", spec.elastic), ("divide_over_clusters", spec.divide_over_clusters)):
        if given:
            yield path, f"cannot be used with {other}; remove one"
    if spec.worker_pools:
        yield from _between_pools(spec)


def _between_pools(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the conflicts between worker pools, and with the job's other fields."""
    if len(spec.worker_pools) > MOST_POOLS:
        yield "worker_pools", f"has {len(spec.worker_pools)} pools; at most {MOST_POOLS} are possible"
    first = spec.worker_pools[0]
    if first.replicas != 1:
        yield "worker_pools[0].replicas", f"{first.replicas} is not 1: the first pool is the primary alone"
    if spec.nodes != 1:
        yield "nodes", "cannot be used with worker_pools, which say how many replicas there are; leave it out"
    if spec.specs != (first.spec,):
        yield "specs", "cannot be used with worker_pools, which say what each replica asks for; leave it out"
    for index, pool in enumerate(spec.worker_pools):
        if pool.spec.name:
            yield f"worker_pools[{index}].spec.name", "names of the catalogue mean nothing in a pool; write its fields"
    servers = spec.worker_pools[SERVERS] if len(spec.worker_pools) > SERVERS else None
    # The third pool serves parameters, or reduces gradients: only its image tells which.
    if servers is not None and REDUCTION_SERVER in servers.image:
        yield from _about_reduction(spec, servers)


def _about_reduction(spec: JobSpec, servers: WorkerPool) -> Iterator[tuple[str, str]]:
    if servers.spec.card_milli:
        yield f"worker_pools[{SERVERS}].spec.cards", "a reduction server has no cards; remove them"
    for index, pool in enumerate(spec.worker_pools[:SERVERS]):
        if pool.replicas and not pool.spec.card_milli:
            yield f"worker_pools[{index}].spec.cards", "is needed: reduction servers serve workers with cards"


def pool_checks(pools: tuple[WorkerPool, ...]) -> Iterator[tuple[str, str | None]]:
    """Return what is wrong within each pool; its spec, command and image follow the rules for the job's."""
    for index, pool in enumerate(pools[:MOST_POOLS]):
        for name, amount, most in (
            ("replicas", pool.replicas, MOST_HELPERS),
            ("bandwidth_gbps", pool.bandwidth_gbps, MOST_GBPS),
            ("disk_size", pool.disk_gib, MOST_DISK_GIB),
        ):
            wrong = not 0 <= amount <= most
            yield f"worker_pools[{index}].{name}", f"{amount} is not between 0 and {most}" if wrong else None
