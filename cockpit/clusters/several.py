"""Opens all clusters that the user uses as one merged view (`-c all`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.clusters.choosing import CLUSTERS, members, own_places, slurm_if_configured, system_runs
from cockpit.config.cluster_names import EVERY_CLUSTER, OWN, SLURM, SYSTEM
from cockpit.model.ids import Millis

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from cockpit.backends.base import Backend
    from cockpit.backends.fleet.backend import FleetBackend
    from cockpit.backends.fleet.member import Opened
    from cockpit.model.view import ClusterRow


def every_cluster(
    open_member: Callable[[str], Awaitable[Opened]], already_open: Mapping[str, Callable[[], Awaitable[Opened]]] = {}
) -> FleetBackend:
    """Return a fleet of all clusters that the user uses; it opens its members with the first operation.

    `open_member`: opens the cluster of a name. `already_open`: clusters that are open, by name; they become members,
    too, even without an entry in config.toml, and are not opened again.
    """
    from cockpit.backends.fleet.backend import FleetBackend
    from cockpit.runtime.clock import SystemClock

    addresses = dict(_addresses(bool(already_open)))
    addresses = {name: CLUSTERS.get(name, name) for name in already_open if name not in addresses} | addresses
    clusters = [(name, text, already_open.get(name) or partial(open_member, name)) for name, text in addresses.items()]
    return FleetBackend(f"{EVERY_CLUSTER} · {len(clusters)} clusters", clusters, SystemClock().now)


def _addresses(may_be_empty: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the name of each cluster with its address or description.

    First the clusters of config.toml, then this machine's Slurm cluster, even if it does not answer, and the engines
    that run here. If there are none, the user's own engine, unless `may_be_empty`.
    """
    named = {name: member.address for name, member in members().items()}
    yield from named.items()
    is_here = {SLURM: bool(slurm_if_configured()), SYSTEM: system_runs(), OWN: _own_runs()}
    # Not twice: config.toml may name a local engine, too.
    local = [name for name, here in is_here.items() if here and name not in named.values()]
    for name in local if local or named or may_be_empty else [OWN]:
        yield name, CLUSTERS[name]


def _own_runs() -> bool:
    """Whether the user's own engine runs; False when its folder cannot be used."""
    from cockpit.backends.local.start import connect
    from cockpit.errors import CockpitError

    try:
        # Connected only to see whether it answers: a socket may outlive its engine.
        channel = connect(own_places())
    except CockpitError:
        return False
    if channel is not None:
        channel.close()
    return channel is not None


class Watching:
    """The clusters for the view of clusters; none is opened before the view is first shown."""

    is_complete = False

    def __init__(self, make: Callable[[], Backend], ahead: Callable[[], int] = lambda: 0) -> None:
        """`ahead`: milliseconds by which the open cluster's clock is ahead of the others', as a demo's may be."""
        self._make, self._ahead = make, ahead
        self._fleet: Backend | None = None

    async def clusters(self) -> list[ClusterRow]:
        """Return the present state of all clusters, without waiting for any of them."""
        if self._fleet is None:
            self._fleet = self._make()
            self._fleet.begin()
        rows, ahead = await self._fleet.clusters(), self._ahead()
        # The view counts ages by the clock of the open cluster.
        return [replace(row, heard_at=_later(row.heard_at, ahead)) for row in rows] if ahead else rows

    async def close(self) -> None:
        if self._fleet is not None:
            await self._fleet.close()


def _later(moment: Millis | None, milliseconds: int) -> Millis | None:
    return None if moment is None else Millis(moment + milliseconds)
