"""Builds the catalogue as a user may see it, with the projects and pools of cluster.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import access_to_entry
from cockpit.model.catalogue import CatalogueShown, EntryKind, EntryRow, PoolEntry, ProjectEntry
from cockpit.model.events import CatalogueChanged
from cockpit.model.spec import Access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.access import Actor
    from cockpit.engine.state import ClusterState
    from cockpit.model.catalogue import AnyEntry

_ORDER = {kind: place for place, kind in enumerate(EntryKind)}


def catalogue_shown(state: ClusterState, actor: Actor) -> CatalogueShown:
    """Return the entries that the actor may see, sorted by kind, project and name."""
    rows = [EntryRow(each, access_to_entry(actor, each)) for each in state.catalogue.values()]
    # The projects of cluster.toml are in no catalogue, so that they are made into entries which no request can change.
    of_rules = (each for each in _of_the_rules(state) if access_to_entry(actor, each) is not Access.NONE)
    rows += [EntryRow(each, Access.RO, of_rules=True) for each in of_rules]
    visible = [each for each in rows if each.may is not Access.NONE]
    visible.sort(key=lambda row: (_ORDER[row.entry.kind], row.entry.project, row.entry.name))
    return CatalogueShown(tuple(visible), actor.admin, tuple(sorted(actor.projects)), actor.name)


def shown_change(actor: Actor, body: CatalogueChanged) -> CatalogueChanged | None:
    """Return the event reduced to entries that the actor may see; None: it has none."""
    if actor.admin:
        return body
    entries, removed = (
        tuple(each for each in some if access_to_entry(actor, each) is not Access.NONE)
        for some in (body.entries, body.removed)
    )
    return replace(body, entries=entries, removed=removed) if entries or removed else None


def _of_the_rules(state: ClusterState) -> Iterator[AnyEntry]:
    """Yield the projects of cluster.toml, and the nodes' pools that the catalogue does not define, as entries."""
    for each in state.cluster.projects:
        yield ProjectEntry(name=each.name, users=each.users, groups=each.groups, access=Access.RO, filed=True)
    # An entry of the catalogue replaces the pool that nodes name by themselves (`Names._pool_nodes`).
    known = {each.name for each in state.catalogue.values() if isinstance(each, PoolEntry)}
    for pool in sorted({node.pool for node in state.nodes.values()} - {"", *known}):
        yield PoolEntry(name=pool, nodes=_nodes_of(state, pool), access=Access.RO, filed=True)


def _nodes_of(state: ClusterState, pool: str) -> tuple[str, ...]:
    return tuple(name for name, node in state.nodes.items() if node.pool == pool)
