"""Gives the replicas of a job their addresses and names, and elastic workers the file with the present workers.

The file is replaced whenever workers start, must end or have ended; `cockpit.elastic` reads it for training scripts.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cockpit.launch.cards import slots
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.names import host_name
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import JobSpec

FOLDER = "/run/cockpit"
"""Folder of the files in the container; read-only."""
FILE = "workers.json"
PATH = f"{FOLDER}/{FILE}"
SOCKET_PATH = f"{FOLDER}/workers.sock"
"""Unix socket that sends the content of the file, see `runtime.containers.shim.notices`."""
PULSE_PATH = "/run/cockpit-pulse/beat"
"""Heartbeat file: a worker's script touches it whenever it reads the workers; if it stops, the worker hangs."""
LIBRARY = "/run/cockpit-python"
"""Read-only folder in every container for `import cockpit.elastic`; last on PYTHONPATH, after the job's folders."""
HOSTS = "hosts"
"""File of the same folder with a line `host:slots` for each worker that stays."""
DISCOVERY = "/etc/edl/discover_hosts.sh"
"""Script that prints the hosts, for launchers that poll them (`horovodrun --host-discovery-script`)."""
DISCOVERY_SCRIPT = f'#!/bin/sh\nexec cat "$(dirname "${{COCKPIT_WORKERS_FILE:-{PATH}}}")/{HOSTS}"\n'


class Worker(msgspec.Struct, frozen=True):
    """A worker that stays."""

    rank: int
    """Rank among the workers that stay, from 0 without gaps, for a new process group."""
    replica: int
    """Number that the worker keeps for its whole life: `COCKPIT_REPLICA`."""
    host: str
    node: str
    slots: int


class Recalled(msgspec.Struct, frozen=True):
    """A worker that must end."""

    replica: int
    kill_at: Millis


class World(msgspec.Struct, frozen=True):
    """Content of the file: the workers of an elastic job."""

    version: int
    """One number for each list, the same for all workers, which grows with each change."""
    min_workers: int
    max_workers: int
    workers: tuple[Worker, ...]
    leaving: tuple[Recalled, ...]


def world_files(job: Job) -> dict[str, bytes]:
    """Return the files of a running elastic job: content by name."""
    content = world(job)
    hosts = "".join(f"{each.host}:{each.slots}\n" for each in content.workers)
    return {FILE: msgspec.json.encode(content), HOSTS: hosts.encode()}


def world(job: Job) -> World:
    """Return the workers of a running elastic job, without its launcher."""
    assert job.attempt is not None
    placement, spec = job.attempt.placement, job.spec
    out = {each.rank: each.kill_at for each in job.leaving}
    if job.ending is not None:
        # A job that is being ended has no worker that stays: all are listed as leaving, with the end of the grace
        # period.
        out |= {part.rank: job.ending.kill_at for part in placement}
    staying = [part for part in placement if part.rank not in out]
    return World(
        # Not the job's version: that grows also by the start of a replica, which changes no list.
        version=job.attempt.workers_version or job.version,
        min_workers=spec.least_nodes,
        max_workers=spec.most_nodes,
        workers=tuple(_worker(job, rank, part) for rank, part in enumerate(staying)),
        leaving=tuple(Recalled(replica, kill_at) for replica, kill_at in sorted(out.items())),
    )


def _worker(job: Job, rank: int, part: Allocation) -> Worker:
    return Worker(rank, part.rank, host_of(job.spec, part.rank), part.node, slots(part.slices))


PREFIX: Final = 16
GATEWAY: Final = "198.18.0.1"
"""The gateway of a job's own network. RFC 2544 reserves 198.18.0.0/15 for tests of network devices, so no machine that
a job may want to reach has such an address."""
_FIRST: Final = 2
_BYTE: Final = 256
_MOST_HOSTS: Final = (1 << PREFIX) - 1 - _FIRST  # without the broadcast address
_AHEAD: Final = 1000
"""How many later workers of an elastic job have names in a container. No rank is used twice, so that theirs are higher:
each worker that is reclaimed or replaced takes another one."""


def address(rank: int) -> str:
    """Return the address of `eth0` in the container of this rank."""
    # The network has 16 bits for hosts; 198.18.0.0 is the network itself and .0.1 its gateway.
    high, low = divmod(_FIRST + rank, _BYTE)
    return f"198.18.{high}.{low}"


def host_of(spec: JobSpec, rank: int) -> str:
    """Return the host name by which other replicas reach this one."""
    if spec.elastic is None:
        return host_name(spec.name, rank)
    return host_name(spec.name, "launcher" if rank < spec.first_worker else f"worker-{rank - spec.first_worker}")


def hosts(spec: JobSpec, placement: Placement) -> dict[str, str]:
    """Return the address by host name of every replica that there is or may come to be.

    Empty if there is only one, which shares the network of its node.
    """
    ranks = {part.rank for part in placement}
    if spec.elastic is not None:
        # The hosts file is written once, when a container starts, so that later workers get their names in advance.
        ranks |= {*range(min(max(ranks) + spec.most_nodes + _AHEAD, _MOST_HOSTS))}
    if len(ranks) == 1:
        return {}
    return {host_of(spec, rank): address(rank) for rank in sorted(ranks)}
