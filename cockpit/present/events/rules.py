"""Sentences for events of the cluster's rules (accounts, partitions, reservations) and for changes of queued jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.quota import places
from cockpit.model.spec import Dependency
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe

RuleEvent = (
    events.ClusterConfigured
    | events.AccountsChanged
    | events.CatalogueChanged
    | events.ReservationMade
    | events.ReservationEnded
    | events.CopyRemoved
    | events.NodeDrained
    | events.NodeResumed
    | events.PricesChanged
    | events.QuotaApplied
    | events.QuotaRemoved
    | events.OthersHeld
    | events.UsageDecayed
)
WaitingEvent = (
    events.DependencyMet | events.DependencyFailed | events.AgeBegan | events.PrioritySet | events.SiteFactorSet
)


def rule_sentence(body: RuleEvent, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence for a change of the cluster: configuration, accounts, nodes, reservations, quota or usage."""
    match body:
        case events.ClusterConfigured():
            # Only the partitions, by which users know a cluster; `cockpit cluster show` has the rest.
            names = listed(each.name for each in body.cluster.partitions)
            return f"the cluster was configured{f' with partitions {names}' if names else ''}"
        case events.AccountsChanged() | events.CatalogueChanged():
            return _of_names(body)
        case (
            events.ReservationMade()
            | events.ReservationEnded()
            | events.CopyRemoved()
            | events.NodeDrained()
            | events.NodeResumed()
            | events.PricesChanged()
        ):
            return _of_nodes(body, at, zone)
        case events.OthersHeld():
            return f"{safe(body.member)} runs {units.counted(len(body.held), 'job')} of its own"
        case events.QuotaApplied() | events.QuotaRemoved():
            return _quota(body)
        case events.UsageDecayed():
            return "usage was set to nothing for a new period" if body.reset else "usage was counted and decayed"


MOST_PRICES = 5


def _of_prices(body: events.PricesChanged) -> str:
    if not body.prices:
        return "the labels of the nodes are their prices again"
    each = [f"{safe(name)} costs {milli / 1000:g}" for name, milli in body.prices.items()]
    more = f" and {len(each) - MOST_PRICES} more nodes" if len(each) > MOST_PRICES else ""
    return f"prices changed: {', '.join(each[:MOST_PRICES])}{more}"


def _of_nodes(
    body: events.ReservationMade
    | events.ReservationEnded
    | events.CopyRemoved
    | events.NodeDrained
    | events.NodeResumed
    | events.PricesChanged,
    at: Millis,
    zone: tzinfo | None,
) -> str:
    """Return the sentence for a change of reservations, staged copies or nodes."""
    match body:
        case events.PricesChanged():
            return _of_prices(body)
        case events.ReservationMade():
            reservation = body.reservation
            span = f"{clock(Millis(reservation.start_at), at, zone)} to {clock(Millis(reservation.end_at), at, zone)}"
            nodes = units.counted(len(reservation.nodes), "node")
            return f"reservation {safe(reservation.name)} reserves {nodes} from {span}"
        case events.ReservationEnded():
            return f"reservation {safe(body.name)} ended"
        case events.CopyRemoved():
            return f"the copy of {safe(body.what)} {safe(body.source)} was removed"
        case events.NodeDrained():
            reclaim = f"; it is reclaimed at {clock(body.gone_at, at, zone)}" if body.gone_at is not None else ""
            return f"node {safe(body.node)} was drained by {safe(body.by)}: {safe(body.reason)}{reclaim}"
        case events.NodeResumed():
            return f"node {safe(body.node)} was returned to service by {safe(body.by)}"


def _quota(body: events.QuotaApplied | events.QuotaRemoved) -> str:
    if isinstance(body, events.QuotaRemoved):
        return f"quota tree {safe(body.name)} was removed"
    # Only leaves hold jobs; the nodes above them share out.
    leaves = sum(not each.node.children for each in places(body.tree.root))
    return f"quota tree {safe(body.tree.name)} was applied, with {units.counted(leaves, 'leaf', 'leaves')}"


def waiting_sentence(body: WaitingEvent) -> str:
    """Return the sentence for a change of a queued job."""
    match body:
        case events.DependencyMet():
            return f"no longer waits for {_condition(body.dependency)}"
        case events.DependencyFailed():
            other = "it" if body.because == body.dependency.job or body.dependency.task is not None else body.because
            return f"can never start: {_condition(body.dependency)} will not come true, because {other} ended so"
        case events.AgeBegan():
            return "may start from now on; its age counts"
        case events.PrioritySet():
            return f"was given priority {body.priority}" if body.priority is not None else "has its own priority again"
        case events.SiteFactorSet():
            return f"has {body.factor} added to its priority"


def _of_names(body: events.AccountsChanged | events.CatalogueChanged) -> str:
    if isinstance(body, events.CatalogueChanged):
        return "; ".join(_catalogue(body)) or "the catalogue stayed as it was"
    return "; ".join(_accounts(body)) or "the accounts stayed as they were"


def _catalogue(body: events.CatalogueChanged) -> Iterator[str]:
    for verb, entries in (("written into", body.entries), ("taken out of", body.removed)):
        if entries:
            yield f"{verb} the catalogue: {listed(f'{each.kind} {each.name}' for each in entries)}"


def _accounts(body: events.AccountsChanged) -> list[str]:
    """Return the kinds of changes that the event has, each with its associations or QOS."""
    parts = []
    if body.associations:
        parts.append(f"set: {listed(safe(each.key) for each in body.associations)}")
    if body.qos:
        parts.append(f"QOS set: {listed(safe(each.name) for each in body.qos)}")
    if body.removed_associations:
        parts.append(f"removed: {listed(map(safe, body.removed_associations))}")
    if body.removed_qos:
        parts.append(f"QOS removed: {listed(map(safe, body.removed_qos))}")
    return parts


def _condition(dependency: Dependency) -> str:
    return f"{dependency.kind} of {dependency.target}" if dependency.job else f"{dependency.kind}"
