"""All clusters that this person uses, as one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cockpit.clusters.choosing import (
    CLUSTERS,
    members,
    own_places,
    slurm_if_configured,
    system_runs,
)
from cockpit.config.clusternames import EVERY_CLUSTER, OWN, SLURM, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from cockpit.backends.fleet.backend import FleetBackend
    from cockpit.backends.fleet.member import Opened


def every_cluster(
    open_member: Callable[[str], Awaitable[Opened]], already_open: Mapping[str, Callable[[], Awaitable[Opened]]] = {}
) -> FleetBackend:
    """Nothing is asked yet.

    `open_member` opens the one of that name. `already_open` has those that are open, by name: they are listed, too,
    also where they have no name in config.toml, and are not opened again.
    """
    from cockpit.backends.fleet.backend import FleetBackend
    from cockpit.runtime.clock import SystemClock

    ways = dict(_ways(bool(already_open)))
    ways = {name: CLUSTERS.get(name, name) for name in already_open if name not in ways} | ways
    found = [(name, way, already_open.get(name) or partial(open_member, name)) for name, way in ways.items()]
    return FleetBackend(f"{EVERY_CLUSTER} · {len(found)} clusters", found, SystemClock().now)


def _ways(may_be_empty: bool = False) -> Iterator[tuple[str, str]]:
    """Those of config.toml, then of this machine its Slurm cluster, even if it is silent, and the engines
    that run.

    Unless that `may_be_empty`, the user's own engine is the only one where there is no other.
    """
    named = {name: member.address for name, member in members().items()}
    yield from named.items()
    there = {SLURM: bool(slurm_if_configured()), SYSTEM: system_runs(), OWN: _own_runs()}
    found = [name for name, is_there in there.items() if is_there and name not in named.values()]
    for name in found if found or named or may_be_empty else [OWN]:
        yield name, CLUSTERS[name]


def _own_runs() -> bool:
    """Where its folder cannot be used, none does."""
    from cockpit.backends.local.start import connect
    from cockpit.errors import CockpitError

    try:
        channel = connect(own_places())
    except CockpitError:
        return False
    if channel is not None:
        channel.close()
    return channel is not None
