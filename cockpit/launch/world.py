"""What the workers of an elastic job are told of each other: who they are now, and who of them has to go.

The file is replaced whenever workers come, are recalled or leave; `cockpit.elastic` reads it for training scripts.
"""

from __future__ import annotations

import msgspec

from cockpit.launch.cards import slots
from cockpit.launch.network import host_of
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.node import Allocation

FOLDER = "/run/cockpit"
"""In the container; read-only."""
FILE = "workers.json"
PATH = f"{FOLDER}/{FILE}"
PULSE_PATH = "/run/cockpit-pulse/beat"
"""Touched by a worker's script whenever it asks for the others: one that stops doing so does not answer any more."""
LIBRARY = "/run/cockpit-python"
"""In every container, read-only: on its `PYTHONPATH` behind the job's own folders, for `import cockpit.elastic`."""
HOSTS = "hosts"
"""Of the same folder: a line `host:slots` for each worker that stays."""
DISCOVERY = "/etc/edl/discover_hosts.sh"
"""Prints these, for launchers that ask now and then, such as `horovodrun --host-discovery-script`."""
DISCOVERY_SCRIPT = f'#!/bin/sh\nexec cat "$(dirname "${{COCKPIT_WORKERS_FILE:-{PATH}}}")/{HOSTS}"\n'


class Worker(msgspec.Struct, frozen=True):
    """One that stays."""

    rank: int
    """Among those that stay, from 0 without gaps: what a new ring goes by."""
    replica: int
    """Its own for ever: `COCKPIT_REPLICA`."""
    host: str
    node: str
    slots: int


class Recalled(msgspec.Struct, frozen=True):
    """One that has to end."""

    replica: int
    kill_at: Millis


class World(msgspec.Struct, frozen=True):
    version: int
    """Grows with every change of the job."""
    min_workers: int
    max_workers: int
    workers: tuple[Worker, ...]
    leaving: tuple[Recalled, ...]


def world_files(job: Job) -> dict[str, bytes]:
    """By name, the content of a placed elastic job's files."""
    told = world(job)
    hosts = "".join(f"{each.host}:{each.slots}\n" for each in told.workers)
    return {FILE: msgspec.json.encode(told), HOSTS: hosts.encode()}


def world(job: Job) -> World:
    """Its launcher is no part of it."""
    assert job.attempt is not None
    placement, spec = job.attempt.placement, job.spec
    out = {each.rank: each.kill_at for each in job.leaving}
    if job.ending is not None:
        out |= {part.rank: job.ending.kill_at for part in placement}
    staying = [part for part in placement if part.rank not in out]
    return World(
        version=job.version,
        min_workers=spec.least_nodes,
        max_workers=spec.most_nodes,
        workers=tuple(_worker(job, rank, part) for rank, part in enumerate(staying)),
        leaving=tuple(Recalled(replica, kill_at) for replica, kill_at in sorted(out.items())),
    )


def _worker(job: Job, rank: int, part: Allocation) -> Worker:
    return Worker(rank, part.rank, host_of(job.spec, part.rank), part.node, slots(part.slices))
